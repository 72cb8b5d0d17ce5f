import type { ChildProcess } from 'node:child_process'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startWorld, type World } from '../support/index.ts'
import { clientPath, type RunOptions, runProcess } from './client.ts'
import { openLine } from './line.ts'
import { makeUsers, type Users } from './users.ts'

let world: World
let user: Awaited<ReturnType<Users['newUser']>>
beforeAll(async () => {
  world = await startWorld()
  user = await makeUsers(world).newUser()
})
afterEach(async () => {
  expect(await world.db.query('select id from sandbox where destroyed_at is null')).toEqual([])
})
afterAll(async () => {
  user[Symbol.dispose]()
  await world[Symbol.asyncDispose]()
})

const once = (args: string[], options: RunOptions = {}) =>
  user.run(['session', 'create', '--rm', ...args], options)
async function newest() {
  const [row] = await world.db.query<{ id: string; name: string | null; reason: string | null }>(
    'select id, name, destroy_reason as reason from sandbox order by id desc limit 1',
  )
  return row!
}

test("`create --rm` forwards the command's streams and exit code", async () => {
  const script = 'cat; echo problem >&2; exit 42'
  const ran = await once(['--name', 'once', '--env', 'A=b', '--', 'sh', '-c', script], {
    input: 'from stdin',
  })
  expect(ran).toMatchObject({ code: 42, stdout: 'from stdin', stderr: 'problem\n' })
  expect(await newest()).toMatchObject({ name: 'once', reason: 'requested' })
})

test("`create --rm` warns when it consumes the rest of the shell's stdin", async () => {
  const script = `printf 'a\\nb\\n' | while read x; do "$0" "$1" session create --rm -- cat; done`
  const args = ['-c', script, process.execPath, clientPath]
  const { stdout, stderr } = await runProcess('/bin/sh', args, user.home.environment())
  expect(stdout).toBe('b\n')
  expect(stderr).toContain('Use </dev/null to leave stdin untouched')
})

test('`create --rm` passes options after the command name to the command', async () => {
  expect(await once(['echo', '--json', '--rm'])).toMatchObject({ code: 0, stdout: '--json --rm\n' })
})

test('`create --rm --json` prints only the requested fields of the result', async () => {
  const fields = '--json=exit_code,stdout,sandbox_id'
  const { json, code } = await once([fields, '--', 'sh', '-c', 'echo out; exit 3'])
  expect(code).toBe(3)
  expect(json()).toEqual({ exit_code: 3, stdout: 'out\n', sandbox_id: (await newest()).id })
})

test.each([
  ['127 for an unknown command', ['--', 'no-such-command'], 127],
  ['125 without a command', [], 125],
  ['125 for an unknown option', ['--nonsense', '--', 'true'], 125],
  ['125 if no session can be created', ['--ttl', '100h', '--', 'true'], 125],
])('`create --rm` exits with code %s', async (_, args, code) => {
  expect(await once(args)).toMatchObject({ code, stdout: '' })
})

test('`create` rejects a command without --rm and creates nothing', async () => {
  expect(await user.run(['session', 'create', 'true'])).toMatchObject({ code: 2, stdout: '' })
})

/** Signals the client when the command prints. */
const onOutput = (signal: NodeJS.Signals) => (child: ChildProcess) =>
  void child.stdout!.on('data', () => child.kill(signal))

test.each([
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('`create --rm` destroys the session before it exits on %s', async (signal, code) => {
  const ran = await once(['--', 'sh', '-c', 'echo up; sleep 60'], { onStart: onOutput(signal) })
  expect(ran).toMatchObject({ code, stdout: 'up\n' })
})

test('`create --rm` forwards the first Ctrl-C to the command and exits on the second', async () => {
  for (const [trap, code] of [
    ['exit 7', 7],
    ['echo again', 130],
  ] as const) {
    const script = `trap "${trap}" INT; echo up; while :; do sleep 0.1; done`
    expect(await once(['--', 'sh', '-c', script], { onStart: onOutput('SIGINT') })).toMatchObject({ code })
  }
})

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('`create --rm` leaves no session if %s arrives during session creation', async (signal, code) => {
  await using line = await openLine(world.url())
  const { code: ended } = await once(['--', 'sleep', '60'], {
    env: user.home.through(line.url),
    onStart: (child) => line.onConnection(() => void child.kill(signal)),
  })
  expect(ended).toBe(code)
})

test('`create --rm` ends the session when the reader of stdout closes the pipe', async () => {
  const { code } = await once(['--', 'sh', '-c', 'while :; do echo line; sleep 0.01; done'], {
    onStart: (child) => child.stdout!.once('data', () => child.stdout!.destroy()),
  })
  expect(code).toBe(141)
})

test('`create --rm` leaves no session behind if the response to the create request is lost', async () => {
  await using line = await openLine(world.url())
  // Cuts the connection before each response, until the client gives up.
  line.cutAnswers(3)
  const { code, stderr } = await once(['--', 'true'], { env: user.home.through(line.url) })
  expect(code).toBe(125)
  expect(stderr).not.toContain('could not be destroyed')
  expect(await newest()).toMatchObject({ reason: 'requested' })
})
