import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { describeExit, noteExitStatus } from '../../cli/exec/exit-status.ts'
import { describeStatus } from '../../cli/ui/describe.ts'
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { callAs } from '../support/account.ts'
import { inside } from '../support/sandbox-commands.ts'
import { shareWorld } from '../support/shared.ts'
import { clientPath, runProcess } from './client.ts'
import { openLine } from './line.ts'
import { startPeer } from './peer.ts'
import { pipeThrough } from './pipe.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld()
const user = shareSession(makeUsers(world))

const exec = (args: string[], options: Parameters<typeof user.run>[1] = {}) =>
  user.run(['exec', ...args], options)
const box = () => {
  const key = user.home.through(world.url()).SANDLOT_API_KEY!
  return inside({ call: (name, options) => callAs(world, { key }, name, options) }, { id: user.id })
}
const isRunning = async (pattern: string) => (await box().countOf(pattern)) > 0

test('`exec` shows output while the command is running, and forwards input that arrives later', async () => {
  let shown = ''
  const { code, stdout } = await exec(['-c', 'echo ready; read line; echo "got $line"; cat | wc -c'], {
    openInput: true,
    onStart: (child) =>
      child.stdout!.on('data', (chunk) => {
        shown += chunk
        if (shown === 'ready\n') child.stdin!.write('a word\n')
        if (shown.endsWith('got a word\n')) child.stdin!.end('12345')
      }),
  })
  expect(code).toBe(0)
  expect(stdout).toBe('ready\ngot a word\n5\n')
})

test('`exec` passes 20 MiB of binary data through unchanged', async () => {
  const args = [clientPath, 'exec', '--', 'cat']
  const { sent, received, code } = await pipeThrough(args, user.home.environment(), 20)
  expect(received).toEqual(sent)
  expect(code).toBe(0)
})

test('`exec` exits when its command exits without reading its input', async () => {
  expect(await exec(['-c', 'echo done'], { input: randomBytes(9_000_000) })).toMatchObject({
    code: 0,
    stdout: 'done\n',
    stderr: '',
  })
  // stdin is a pipe that is never closed.
  expect(await exec(['-c', 'exit 3'], { openInput: true })).toMatchObject({ code: 3, stderr: '' })
})

test('`exec` runs the command in / if /workspace cannot be entered, and prints a note to stderr', async () => {
  await box().exec({ command: 'chmod 000 /workspace', cwd: '/' })
  const seen = await exec(['pwd'])
  await box().exec({ command: 'chmod 755 /workspace', cwd: '/' })
  expect(seen).toMatchObject({
    ...{ code: 0, stdout: '/\n' },
    stderr: 'sandlot: the command ran in /, because /workspace could not be entered\n',
  })
})

const inShell = (script: string) =>
  runProcess(
    '/bin/sh',
    ['-c', `client() { "$NODE" "$CLIENT" "$@"; }\n${script}`],
    user.home.environment({ NODE: process.execPath, CLIENT: clientPath }),
  )

test("`exec` without -n warns when it consumes the rest of the shell's stdin", async () => {
  const loop = (options: string) =>
    inShell(`printf 'a\\nb\\nc\\n' | while read x; do client exec ${options} -- echo "$x"; done`)
  expect(await loop('')).toMatchObject({
    ...{ code: 0, stdout: 'a\n' },
    stderr:
      'sandlot: the command received 4 bytes of stdin that belong to the surrounding shell. Use -n to leave stdin ' +
      'untouched, for example in a `while read` loop. Use -i to send stdin and hide this note.\n',
  })
  expect(await loop('-n')).toMatchObject({ code: 0, stdout: 'a\nb\nc\n', stderr: '' })
  expect(await loop('-i')).toMatchObject({ code: 0, stdout: 'a\n', stderr: '' })
})

test('`exec` does not warn when stdin is intended only for the command', async () => {
  const piped = await inShell(`printf 'b\\na\\n' | "$NODE" "$CLIENT" exec -- sort; true`)
  expect(piped).toMatchObject({ code: 0, stdout: 'a\nb\n', stderr: '' })
})

test('`exec --json` prints the result of a command that reads stdin', async () => {
  const { json, code } = await exec(['--json', 'wc', '-c'], { input: randomBytes(300_000) })
  expect(code).toBe(0)
  expect(json()).toMatchObject({ status: 'exited', stdout: '300000\n', stdout_bytes: 7 })
})

test("Ctrl-C is forwarded to the command, and the client exits with the command's exit code", async () => {
  const { code, stdout } = await exec(
    ['-c', 'trap "echo caught; exit 7" INT; echo up; while :; do sleep 0.1; done'],
    {
      onStart: (child) => child.stdout!.once('data', () => child.kill('SIGINT')),
    },
  )
  expect(stdout).toBe('up\ncaught\n')
  expect(code).toBe(7)
})

test.each([
  ['trap "echo bye; exit 9" TERM', 'up\nbye\n', 9, 'exited 9'],
  ['', 'up\n', 143, 'signaled SIGTERM'],
])('`exec` forwards SIGTERM to %j and reports the exit status', async (trap, stdout, code, end) => {
  const ran = await exec(['-c', `${trap}\necho up; sleep 300 & wait`], {
    onStart: (child) => child.stdout!.once('data', () => child.kill('SIGTERM')),
  })
  expect(ran).toMatchObject({ stdout, code })
  expect(ran.stderr).toBe(`sandlot: the command has ended after SIGTERM was forwarded: ${end}.\n`)
})

test.each([
  ['SIGINT', 'INT', 130],
  ['SIGTERM', 'TERM', 143],
] as const)('a second %s makes the client exit and kills the command', async (signal, name, code) => {
  const sleep = `sleep 0.77${code}`
  const ran = await exec(['-c', `trap "echo again" ${name}; echo up; while :; do ${sleep}; done`], {
    onStart: (child) =>
      child.stdout!.on('data', (chunk) => {
        if (/up|again/.test(String(chunk))) child.kill(signal)
      }),
  })
  expect(ran.code).toBe(code)
  await world.eventually(async () => !(await isRunning(`sleep 0.[7]7${code}`)), 10_000)
})

test.each([
  ['without input', '775', ['-n'], {}],
  ['while sending stdin', '774', [], { openInput: true }],
])('a command whose client is killed %s ends after its grace period', async (_, seconds, options, input) => {
  const { signal } = await exec([...options, '--grace', '100ms', '-c', `echo up; sleep ${seconds}`], {
    ...input,
    onStart: (child) => child.stdout!.once('data', () => child.kill('SIGKILL')),
  })
  expect(signal).toBe('SIGKILL')
  await world.eventually(async () => !(await isRunning(`sleep [7]${seconds.slice(1)}`)), 5_000)
  const { data } = (await user.run(['ps', '--json'])).json()
  const { id } = data.find(({ command }: { command: string }) => command.includes(`up; sleep ${seconds}`))
  expect((await user.run(['logs', '-f', id])).stderr).toContain(
    "killed: its client disconnected. The client was disconnected for longer than the command's grace period (--grace).",
  )
})

test.each([
  [['cat'], { grace_ms: 10_000 }],
  [['--grace', '1m', 'cat'], { grace_ms: 60_000 }],
  [['--background', '--grace', '1m', 'cat'], {}],
])('exec %j with stdin from a pipe sends the request fields %j', async (args, grace) => {
  const problem = { code: 'not_found', detail: 'None.', request_id: 'req_1', status: 404 }
  await using peer = await startPeer((_, response) => response.writeHead(404).end(JSON.stringify(problem)))
  await exec(args, { openInput: true, env: { ...user.home.through(peer.url), SANDLOT_SESSION: user.id } })
  const asked = peer.asked.find(({ body }) => body !== '')!
  expect(JSON.parse(asked.body)).toEqual({ command: ['cat'], background: true, ...grace })
})

// Concurrent, because the tests mostly wait.
test.concurrent('`exec` kills the command when the reader of stdout closes the pipe', async () => {
  const { code, stderr } = await exec(['-c', 'while :; do echo y887; done'], {
    onStart: (child) => child.stdout!.once('data', () => child.stdout!.destroy()),
  })
  expect(code).toBe(141)
  expect(stderr).toBe('')
  await world.eventually(async () => !(await isRunning('y88[7]')), 5_000)
})

test.concurrent('no input or output is lost when the connection breaks several times', async () => {
  await using line = await openLine(world.url())
  const bytes = randomBytes(8_000_000)
  let cuts = 0
  let shown = 0
  // Cuts only after progress, so that the transfer can complete.
  const cutAfterEachMegabyte = (chunk: Buffer) => {
    if (Math.floor((shown + chunk.length) / 1e6) > Math.floor(shown / 1e6)) cuts += line.cut()
    shown += chunk.length
  }
  const ran = await exec(['cat'], {
    input: bytes,
    env: user.home.through(line.url),
    onStart: (child) => child.stdout!.on('data', cutAfterEachMegabyte),
  })
  expect(ran).toMatchObject({ code: 0, stderr: '' })
  expect(cuts).toBeGreaterThan(3)
  expect(ran.bytes.equals(bytes)).toBe(true)
})

test('`exec` reports that its command was killed because the session was destroyed', async () => {
  const other = (await user.run(['session', 'create'])).stdout.trim()
  const { code, stderr } = await exec(['-s', other, '-c', 'echo up; sleep 60'], {
    onStart: (child) => child.stdout!.once('data', () => void user.run(['session', 'rm', '--yes', other])),
  })
  expect(code).toBe(125)
  expect(stderr).toBe(
    'sandlot: the session has ended (it was destroyed on request), which killed the command.\n',
  )
})

test.each([
  ['expired', 'its TTL has expired'],
  ['pod_failed', 'its pod failed'],
])('`exec` reports that its command was killed because the session ended: %s', (reason, why) => {
  const said: string[] = []
  const end = { status: 'killed', exit_code: null, signal: null, duration_ms: 1, reason } as ExecOutcome
  noteExitStatus(end, (text) => said.push(text))
  expect(said).toEqual([`sandlot: the session has ended (${why}), which killed the command.`])
  expect(describeExit(end)).toBe(`killed with its session (${why})`)
  expect(describeStatus(end).text).toBe(`killed with its session: ${why}`)
})

test.each([
  ['not_found', ['no-such-program'], 127, 'its program was not found in the session'],
  ['not_executable', ['/etc'], 126, 'its program is a directory or not executable'],
  ['no_such_directory', ['--cwd', '/nowhere', 'pwd'], 126, 'its working directory (--cwd) cannot be entered'],
])('`exec` explains the start error %s', async (_, args, code, why) => {
  const ran = await exec(args)
  expect(ran.code).toBe(code)
  expect(ran.stderr).toContain(`\nsandlot: the command did not run, because ${why}.`)
  expect((await exec(['-c', `exit ${code}`])).stderr).toBe('')
})

test('`exec` suggests -s if the command is the name of a session', async () => {
  const hint = `To run it in session "${user.id}": sandlot exec --session ${user.id} uname -a\n`
  const plain = await exec([user.id, 'uname', '-a'])
  expect(plain.code).toBe(127)
  expect(plain.stderr.endsWith(`\n${hint}`)).toBe(true)
  expect((await exec(['no-such-command', 'uname', '-a'])).stderr).not.toContain('To run it in')
  expect((await exec(['--json', user.id, 'uname', '-a'])).stderr).not.toContain('To run it in')
})

test('`exec --background` prints an id and exits while the command keeps running', async () => {
  const { code, stdout } = await exec(['-n', '--background', '-c', 'sleep 1; touch made-later'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/^exec_\w{26}\n$/)
  await world.eventually(async () => (await box().sh('ls')).stdout.includes('made-later'), 10_000)
})

test('`exec` shows a secret only with --reveal', async () => {
  await user.run(['secrets', 'create', 'WORD'], { input: 'p4ssw0rd!\n' })
  expect((await exec(['-n', '--', 'printenv', 'WORD'])).stdout).toBe('[secret WORD]\n')
  expect((await exec(['-n', '--reveal', '--', 'printenv', 'WORD'])).stdout).toBe('p4ssw0rd!\n')
  await user.run(['secrets', 'rm', '--yes', 'WORD'])
})
