/** A sandbox at its limits. On Kubernetes, only the soak tests it, because a small node would be busy. */
import { describe, expect, test } from 'vitest'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import type { Refusal } from '../support/account.ts'
import { type DriverName, describeOnEveryImage } from '../support/drivers.ts'
import { isSoak } from '../support/eventually.ts'
import { callTool, connectMcp, useTool } from '../support/mcp.ts'
import { takeAllProcesses } from '../support/sandbox-commands.ts'
import { shareSandbox } from '../support/shared.ts'

if (isSoak) describeOnEveryImage('a sandbox', testExhausted)
else describe('local sandboxes', () => testExhausted({ driver: 'local', env: {} }))

function testExhausted({ driver, env }: { driver: DriverName; env: Record<string, string> }): void {
  const { world, alice, params, sh, countOf, waitForExit } = shareSandbox({
    driver,
    env: { ...env, SANDBOX_PIDS: '64' },
  })

  /** Repeats a request until it is rejected. @returns the number of successes */
  async function untilRefused(name: string, ask: () => Promise<unknown>): Promise<number> {
    let passed = 0
    const problem = await world.eventually(async () => {
      try {
        await ask()
        passed += 1
      } catch (error) {
        return (error as Refusal).problem
      }
      return undefined
    }, 30_000)
    expect(problem, `${name}: ${problem.detail}`).toMatchObject({
      status: 409,
      code: 'sandbox_exhausted',
      exhausted: 'processes',
    })
    expect(problem.detail, name).toContain('reset')
    return passed
  }
  const exec = (more: Partial<ExecRequest> = {}, headers: Record<string, string> = {}) =>
    alice.call('execCommand', { params, body: { command: 'true', ...more }, headers })
  const fillUp = async () => {
    await takeAllProcesses(alice, params)
    await untilRefused('a command', exec)
  }

  test('every route reports that a sandbox has reached its process limit, and a reset keeps the files', async () => {
    await sh('echo kept >kept')
    await fillUp()
    const count = async () => Number((await world.db.query('select count(*) from exec'))[0]!.count)
    const before = await count()
    const events = { accept: 'text/event-stream' }
    let tries = 0
    const keyed = (n: number) => exec({ command: 'echo ran' }, { 'idempotency-key': `key-${n}` })
    const commands = {
      exec: () => exec(),
      background: () => exec({ background: true }),
      terminal: () => exec({ tty: true }),
      keyed: () => keyed(++tries),
      events: () => alice.open('execCommand', { params, body: { command: 'true' }, headers: events }),
    }
    let passed = 0
    for (const [name, ask] of Object.entries(commands)) passed += await untilRefused(name, ask)
    expect(await count()).toBe(before + passed)
    const path = 'kept'
    await untilRefused('view', () => alice.call('viewFile', { params, query: { path } }))
    await untilRefused('create', () =>
      alice.call('createFile', { params, body: { path: 'new', content: 'x', overwrite: true } }),
    )
    await untilRefused('raw', () => alice.open('readRawFile', { params, query: { path } }))

    const { body } = await alice.call('resetSandbox', { params })
    expect(body).toMatchObject({ id: params.id, state: 'active' })
    expect(await sh('cat kept')).toMatchObject({ status: 'exited', exit_code: 0, stdout: 'kept\n' })
    expect(await countOf('slee[p] 600')).toBe(0)
    expect((await keyed(tries)).body).toMatchObject({ status: 'exited', stdout: 'ran\n' })
  })

  test('a reset ends a fork bomb, and the command that started it is reported as signaled or lost', async () => {
    const { body } = await exec({
      command: 'bomb() { while bomb & do :; done; }; bomb & exec sleep 600',
      background: true,
    })
    await alice.call('resetSandbox', { params })
    expect(await sh('true')).toMatchObject({ status: 'exited', exit_code: 0 })
    expect(await countOf('bom[b]')).toBe(0)
    expect((await waitForExit(body.id)).status).toMatch(/^(signaled|lost)$/)
  })

  test('an agent that follows the process-limit error can recover the sandbox with a reset', async () => {
    const client = await connectMcp(world, alice)
    const session = { session_id: params.id }
    await fillUp()
    const { content } = await world.eventually(async () => {
      const result = await callTool(client, 'exec', { ...session, command: 'true' })
      return result.isError ? result : undefined
    }, 30_000)
    expect(JSON.parse(content[0]!.text)).toMatchObject({
      code: 'sandbox_exhausted',
      next: expect.stringContaining('session_reset'),
    })
    expect((await callTool(client, 'session_reset', session)).content).toEqual([
      { type: 'text', text: expect.stringContaining('active') },
    ])
    expect(await useTool(client, 'exec', { ...session, command: 'true' })).toMatchObject({ exit_code: 0 })
    await client.close()
  })

  // On Kubernetes, a full /tmp ends the pod instead.
  test.runIf(driver === 'local')('a terminal reports that /tmp in its sandbox is full', async () => {
    await sh('head -c 80000000 /dev/zero >/tmp/big')
    await expect(exec({ tty: true })).rejects.toMatchObject({
      problem: { code: 'sandbox_exhausted', exhausted: 'disk' },
    })
    await sh('rm /tmp/big')
  })
}
