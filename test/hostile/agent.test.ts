/** A hostile agent of a local sandbox, with a neighbour on the same worker. */
import { expect, test } from 'vitest'
import { inside } from '../support/sandbox-commands.ts'
import { shareSandbox } from '../support/shared.ts'
import { agentSocketOf, replaceAgent, status } from './hostile-agent.ts'

const { world, sh: neighbourSh } = shareSandbox()

const attacks = {
  'repeats `started`': { role: 'main', endless: status({ started: true }) },
  'sends empty lines': { role: 'main', endless: Buffer.from('\n') },
  'sends a line that never ends': { role: 'main', endless: Buffer.from('x') },
  'reports an exit before the start': { role: 'main', endless: status({ exit: 0 }) },
  'reports a failure after the start': { started: true, role: 'main', endless: status({ failed: 'x' }) },
  'sends output without a start': { role: 'main', endless: status({ stdout: 'x' }) },
} as const

test.each(Object.entries(attacks))(
  'a hostile local agent that endlessly %s is disconnected, and no other sandbox loses a command',
  async (_, attack) => {
    await neighbourSh('[ -p word ] || mkfifo word')
    const running = neighbourSh('read -r word <word; echo "$word"', { timeout_ms: 120_000 })
    running.catch(() => {})
    const hostile = await world.account()
    const params = { id: (await hostile.call('createSandbox')).body.id }
    const { sh } = inside(hostile, params)
    // The process that this command leaves prevents that later commands run in its shell, without the agent.
    expect(await sh('sleep 600 &')).toMatchObject({ exit_code: 0 })
    const sent = await replaceAgent(agentSocketOf(world, params.id), attack)
    await Promise.all(
      Array.from({ length: 4 }, () => expect(sh('true')).rejects.toMatchObject({ code: 'unavailable' })),
    )
    expect(sent.length).toBeGreaterThan(0)
    // The kernel has buffered the rest.
    expect(Math.max(...sent)).toBeLessThan(2 * 1024 * 1024)
    expect(await neighbourSh('echo there >word')).toMatchObject({ exit_code: 0 })
    expect(await running).toMatchObject({ status: 'exited', stdout: 'there\n' })
    await hostile.call('destroySandbox', { params })
  },
)
