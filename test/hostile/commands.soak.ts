/** Hostile commands and output, with a neighbour on the same worker. */
import { expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import { shareWorld } from '../support/shared.ts'
import { type Tenant, withNeighbour } from './neighbour.ts'

// Local sandboxes of tests may be stored in memory, where the 200 MB file of the first test counts toward the
// memory limit.
const world = shareWorld({ env: { SANDBOX_PIDS: '128', SANDBOX_MEMORY: '256Mi' } })

/** Runs a command until its timeout, and accepts any exit status. */
const endure = async ({ sh }: Tenant, script: string, timeout_ms = 2_500) => {
  // At the process limit, commands are accepted again once the previous processes have ended.
  const result = await world.eventually(() => sh(script, { timeout_ms }), 15_000)
  expect(result.status).not.toBe('running')
  return result
}

test("exhausting a sandbox's processes, memory and disk does not slow down other sandboxes", async () => {
  await withNeighbour(world, async (hostile) => {
    await endure(hostile, 'bomb() { bomb | bomb & }; bomb; sleep 2')
    await endure(hostile, 'tail /dev/zero')
    await endure(hostile, 'head -c 200000000 /dev/zero >big; rm big')
    await endure(hostile, 'while :; do : >"$(date +%N)-$$"; done')
  })
})

/** Scripts of hostile commands, keyed by a description of their output. */
const prints: Record<string, string> = {
  'single bytes, alternating between both streams':
    'i=0; while [ $i -lt 20000 ]; do printf a; printf b >&2; i=$((i+1)); done',
  'every byte': `for i in $(seq 0 255); do printf "\\\\$(printf %03o $i)"; done; head -c 3000000 /dev/urandom`,
  'guessed sentinels': `for i in $(seq 1 3000); do printf '\\0\\1sandlot %s 0\\n' $i; echo "exit 0" >&2; done`,
  'control sequences of terminals and event streams':
    "for i in $(seq 1 3000); do printf '\\033[2J\\033]0;x\\007\\nevent: exit\\ndata: {}\\n\\n\\342\\200\\250\\302\\205'; done",
  'one line without end': 'head -c 20000000 /dev/zero | tr "\\0" x',
  'nothing, after closing its streams': 'exec >&- 2>&-; sleep 0.2; exit 3',
  'through children that outlive it': '(while :; do echo on; sleep 0.01; done) & sleep 0.3; exit 4',
  'and kills its shell': 'echo before; kill -9 $PPID $$',
}

test('commands with hostile output end with an exit status and do not slow down other sandboxes', async () => {
  const result = await withNeighbour(world, async (hostile) => {
    const kinds = Object.entries(prints)
    const results = await Promise.all(
      kinds.map(async ([kind, script]) => [kind, await endure(hostile, script, 20_000)] as const),
    )
    return Object.fromEntries(results)
  })
  expect(result['single bytes, alternating between both streams']).toMatchObject({
    status: 'exited',
    stdout_bytes: 20_000,
    stderr_bytes: 20_000,
    stdout: 'a'.repeat(20_000),
  })
  expect(result['every byte']).toMatchObject({ status: 'exited', stdout_bytes: 3_000_256 })
  expect(result['guessed sentinels']).toMatchObject({ status: 'exited', exit_code: 0 })
  expect(result['one line without end']).toMatchObject({ stdout_bytes: 20_000_000, truncated: true })
  expect(result['nothing, after closing its streams']?.status).toMatch(/^(exited|lost)$/)
  expect(result['through children that outlive it']).toMatchObject({ status: 'exited', exit_code: 4 })
})

test('the maximum number of maximum-size commands does not slow down other sandboxes', async () => {
  await withNeighbour(world, async ({ account, params, exec }) => {
    const argument = 'x'.repeat(100_000)
    const most = Array.from({ length: 9 }, () => argument)
    expect(await exec({ command: ['sh', '-c', 'echo $#', 'sh', ...most] })).toMatchObject({ stdout: '9\n' })
    const env = Object.fromEntries(most.map((value, index) => [`V${index}`, value]))
    expect(await exec({ command: 'printenv V8 | wc -c', env })).toMatchObject({ stdout: '100001\n' })
    const tooMuch = ['echo', ...most, argument]
    await expect(exec({ command: tooMuch })).rejects.toMatchObject({ code: 'invalid_request' })
    const background = Array.from({ length: 30 }, (_, index) =>
      account
        .call('execCommand', { params, body: { command: `sleep 60; echo ${index}`, background: true } })
        .then(({ status }) => status)
        .catch(({ code }) => code),
    )
    for (const answer of await Promise.all(background))
      expect([202, 'rate_limited', 'unavailable']).toContain(answer)
    const name = 'n'.repeat(255)
    await account.call('createFile', { params, body: { path: `${name}/${name}/${name}`, content: 'deep' } })
    await account.call('listFiles', { params, query: { path: `${name}/${name}` } })
  })
})

test('redacting the maximum number of secrets does not slow down other sandboxes', async () => {
  const result = await withNeighbour(world, async ({ account, exec }) => {
    const value = (index: number) => `${index}-`.repeat(400).slice(0, 1_000)
    for (let index = 0; index < limits.secrets; index++) {
      await account.call('createSecret', { body: { name: `S${index}`, value: value(index) } })
    }
    const shown = () => exec({ command: 'echo "$S7"; for i in $(seq 1 2000); do echo "$S63"; done | wc -c' })
    return await Promise.all(Array.from({ length: 6 }, shown))
  })
  for (const { stdout } of result) expect(stdout.split('\n')[0]).toBe('[secret S7]')
})
