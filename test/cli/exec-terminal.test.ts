/** `sandlot exec -it`: a terminal in a sandbox, over connections that break, given back on every way out. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { clientPath } from './client.ts'
import { openLine } from './line.ts'
import { openTerminal, type Terminal } from './terminal.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld()
const user = shareSession(makeUsers(world))

/** A terminal of 33 rows and 99 columns, in which the client runs, then `stty` tells what it left. */
const openClient = (words: string[], url = world.url()): Terminal => {
  const client = [process.execPath, clientPath, 'exec', '-s', user.id, ...words]
  return openTerminal(
    ['sh', '-c', 'trap : INT; stty rows 33 cols 99; "$@"; echo "code $?"; stty -a', 'sh', ...client],
    user.home.environment({ SANDLOT_URL: url }),
  )
}

/** The client has ended with this code, and left the terminal as it was. */
async function leaves(terminal: Terminal, code: number) {
  await terminal.shows(`code ${code}\r\n`)
  await terminal.shows('isig icanon')
  expect(terminal.screen()).toMatch(/ echo /)
  await terminal.ended
}

test('-t without a terminal says what to do instead', async () => {
  const { code, stderr } = await user.run(['exec', '-it', 'sh'])
  expect(code).toBe(125)
  expect(stderr).toContain('terminal')
})

test.each([
  ['-t', ['-it', '--background', '--', 'sleep', '60']],
  ['--attach', ['--attach', 'exec_a', '--background']],
])('%s with --background is refused, and nothing is started', async (option, words) => {
  const terminal = openClient(words)
  await leaves(terminal, 125)
  expect(terminal.screen()).toContain(`${option} keeps this terminal`)
  expect((await user.run(['exec', 'ls', '--quiet'])).stdout).toBe('')
})

test('-it gives the command this terminal: keys, size, exit code; and gives it back as it was', async () => {
  const shell = openClient(['-it', '--', 'sh'])
  await shell.shows('$ ')
  shell.type('echo $((6*7)); stty size\r')
  await shell.shows('42')
  await shell.shows('33 99')
  // Ctrl-C is a key like any other.
  await shell.shows('$ ')
  shell.type("sh -c 'echo sleeps-$((1+1)); exec sleep 60'\r")
  // From here on the terminal's foreground is its own: no Ctrl-C can come too early.
  await shell.shows('sleeps-2')
  shell.type('\x03')
  await shell.shows('$ ')
  shell.type('exit 5\r')
  await leaves(shell, 5)
})

test('a command that ends before it could be attached to still shows all it printed', async () => {
  const quick = openClient(['-it', '--', 'sh', '-c', 'echo quick as can be; exit 3'])
  await quick.shows('quick as can be')
  await leaves(quick, 3)
})

test('a connection that breaks is made again, and what was shown is not shown twice', async () => {
  await using line = await openLine(world.url())
  const shell = openClient(['-it', '--', 'sh'], line.url)
  await shell.shows('$ ')
  shell.type('X=kept; echo shown-$((2-1))-time\r')
  await shell.shows('shown-1-time')
  await shell.shows('$ ')
  line.cut()
  await shell.shows('The connection broke.')
  await shell.shows('attached again')
  shell.type('echo is-$X\r')
  await shell.shows('is-kept')
  shell.type('exit 6\r')
  await leaves(shell, 6)
  expect(shell.screen().match(/shown-1-time/g)).toHaveLength(1)
})

test('what a command printed last, while the connection was away, is shown when it is back', async () => {
  await using line = await openLine(world.url())
  const script = 'echo it is up; while [ ! -e go ]; do sleep 0.05; done; echo last words; exit 4'
  const shell = openClient(['-it', '--', 'sh', '-c', script], line.url)
  await shell.shows('it is up')
  line.hold()
  await shell.shows('The connection broke.')
  await user.run(['exec', '-n', 'touch', 'go'])
  await world.eventually(async () => (await user.run(['exec', 'ls'])).stdout.includes('exited\t4'), 10_000)
  line.mend()
  await shell.shows('last words')
  await leaves(shell, 4)
  expect(shell.screen().match(/it is up/g)).toHaveLength(1)
})

test('Ctrl-C leaves while the connection is away, and --attach goes back', async () => {
  await using line = await openLine(world.url())
  const first = openClient(['-it', '--', 'sh'], line.url)
  await first.shows('$ ')
  first.type('Y=kept\r')
  await first.shows('$ ')
  line.hold()
  await first.shows('--attach exec_')
  const execId = /--attach (exec_\w+)/.exec(first.screen())![1]!
  first.type('\x03')
  await leaves(first, 130)
  const second = openClient(['--attach', execId])
  await second.shows('$ ')
  second.type('echo is-$Y; exit 6\r')
  await second.shows('is-kept')
  await leaves(second, 6)
})

test('a client that is told to end gives the terminal back first', async () => {
  const shell = openClient(['-it', '--', 'sh', '-c', 'echo it is up; exec sleep 77.7'])
  await shell.shows('it is up')
  const clients = readdirSync('/proc').filter((pid) => {
    const words = commandLine(pid)
    return words[0] === process.execPath && words.includes(clientPath) && words.at(-1)?.includes('77.7')
  })
  expect(clients).toHaveLength(1)
  process.kill(Number(clients[0]), 'SIGTERM')
  await leaves(shell, 143)
  await world.eventually(async () => !(await user.run(['exec', 'ls'])).stdout.includes('running'), 10_000)
})

test('commands whose worker died are lost, and say so: at a terminal, in the list, the logs, to a signal', async () => {
  const later = (await user.run(['exec', '-n', '--background', 'sleep', '60'])).stdout.trim()
  const shell = openClient(['-it', '--', 'sh'])
  await shell.shows('$ ')
  await Promise.all(world.workers.map((worker) => worker.kill()))
  const started = world.startWorker()
  await shell.shows('the command was lost')
  await leaves(shell, 125)
  await started
  const [listed, logs, kill] = await Promise.all([
    user.run(['exec', 'ls']),
    user.run(['exec', 'logs', '-f', later]),
    user.run(['exec', 'kill', later]),
  ])
  expect(listed.stdout).toContain(`${later}\tlost\t`)
  expect(logs).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('the command was lost') })
  expect(kill).toMatchObject({ code: 5, stderr: expect.stringContaining('has ended already: lost: ') })
})

function commandLine(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)
  } catch {
    return [] // no process, or gone
  }
}
