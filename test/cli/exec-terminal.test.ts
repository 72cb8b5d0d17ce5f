/** `sandlot exec -it` across broken connections. The local terminal is restored on every exit. */
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DetachKeys } from '../../cli/exec/detach-keys.ts'
import { promptFor, terminalType } from '../../cli/exec/launch-terminal.ts'
import { shareWorld } from '../support/shared.ts'
import { clientPath } from './client.ts'
import { openLine } from './line.ts'
import { openScreen } from './screen.ts'
import { openTerminal, type Terminal } from './terminal.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld()
const user = shareSession(makeUsers(world))

/** Uses 33 rows and 99 columns. Afterwards, `stty` prints the terminal modes. */
const openClient = (words: string[], url = world.url(), TERM = 'xterm', name = 'exec'): Terminal => {
  const client = [process.execPath, clientPath, name, '-s', user.id, ...words]
  return openTerminal(
    ['sh', '-c', 'trap : INT; stty rows 33 cols 99; "$@"; echo "code $?"; stty -a', 'sh', ...client],
    user.home.environment({ ...user.home.through(url), TERM }),
  )
}

const attachClient = (words: string[]) => openClient(words, world.url(), 'xterm', 'attach')

/** Asserts that a variable set over an earlier connection is still set. */
async function hasKept(terminal: Terminal, variable: string) {
  terminal.type(`echo is-$${variable}\r`)
  await terminal.shows('is-kept')
}

/** Exits the shell, and asserts that the client exits with the same code. */
async function exitShell(terminal: Terminal, code: number) {
  terminal.type(`exit ${code}\r`)
  await expectExit(terminal, code)
}

/** Waits for the client's exit code, and checks that the terminal is restored. */
async function expectExit(terminal: Terminal, code: number) {
  await terminal.shows(`code ${code}\r\n`)
  await terminal.shows('isig icanon')
  expect(terminal.screen()).toMatch(/ echo /)
  await terminal.ended
}

test('`exec -t` fails without a terminal and suggests an alternative', async () => {
  const { code, stderr } = await user.run(['exec', '-it', 'sh'])
  expect(code).toBe(125)
  expect(stderr).toContain('terminal')
})

test.each([
  [['--background'], '-t and --background are mutually exclusive'],
  [['--detach-keys', 'ctrl-1'], '--detach-keys "ctrl-1" is invalid'],
])('`exec -t` rejects %j and starts nothing', async (options, message) => {
  const terminal = openClient(['-it', ...options, '--', 'sleep', '60'])
  await expectExit(terminal, 125)
  expect(terminal.screen()).toContain(message)
  expect((await user.run(['ps', '--quiet'])).stdout).toBe('')
})

test('if the session is destroyed while a shell is open, `exec` prints a notice on a new line', async () => {
  const other = (await user.run(['session', 'create'])).stdout.trim()
  const shell = openClient(['-s', other, '-it', '--', 'sh'])
  await shell.shows('$ ')
  await user.run(['session', 'rm', other])
  await shell.shows('\r\nsandlot: the session has ended (it was destroyed on request)')
  await expectExit(shell, 125)
})

// Concurrent, because the tests mostly wait.
test.concurrent('`exec` suggests -it when a shell started without -it exits immediately', async () => {
  const shell = openClient(['sh'])
  await shell.shows('run `sandlot exec -it -- sh`.')
  await expectExit(shell, 0)
  const script = openClient(['sh', '-c', 'echo is-$((1+1))'])
  await script.shows('is-2')
  await expectExit(script, 0)
  expect(script.screen()).not.toContain('-it')
})

test.concurrent('`exec -it` forwards keys and the terminal size, and restores the terminal', async () => {
  const shell = openClient(['-it', '--', 'sh'])
  await shell.shows('$ ')
  shell.type('echo $((6*7)); stty size\r')
  await shell.shows('42')
  await shell.shows('33 99')
  await shell.shows('$ ')
  shell.type("sh -c 'echo sleeps-$((1+1)); exec sleep 60'\r")
  // The command is now in the foreground, so Ctrl-C reaches it.
  await shell.shows('sleeps-2')
  shell.type('\x03')
  await shell.shows('$ ')
  await exitShell(shell, 5)
})

test.concurrent('`exec -it` shows all output of a command that exits before the client attaches', async () => {
  const quick = openClient(['-it', '--', 'sh', '-c', 'echo quick as can be; exit 3'])
  await quick.shows('quick as can be')
  await expectExit(quick, 3)
})

test.concurrent('after reconnecting, `exec -it` does not print any output twice', async () => {
  await using line = await openLine(world.url())
  const shell = openClient(['-it', '--', 'sh'], line.url)
  await shell.shows('$ ')
  shell.type('X=kept; echo shown-$((2-1))-time\r')
  await shell.shows('shown-1-time')
  await shell.shows('$ ')
  line.cut()
  await shell.shows('The connection was lost.')
  await shell.shows('reconnected')
  await hasKept(shell, 'X')
  await exitShell(shell, 6)
  expect(shell.screen().match(/shown-1-time/g)).toHaveLength(1)
})

test.concurrent("after reconnecting, `exec -it` redraws a full-screen program and hides the client's messages", async () => {
  await using line = await openLine(world.url())
  const draw = "printf '\\033[2J\\033[H'; stty size; echo the whole screen"
  const script = `printf '\\033[?1049h\\033[?25lupside down'; trap "${draw}" WINCH; while :; do sleep 0.1; done`
  using screen = openScreen(
    [process.execPath, clientPath, 'exec', '-it', '-s', user.id, '--', 'sh', '-c', script],
    user.home.environment(user.home.through(line.url)),
  )
  await screen.shows('upside down')
  expect(screen.isAlternate()).toBe(true)
  line.hold()
  await screen.shows('The connection was lost.')
  // During the outage, the user's screen and cursor are restored.
  expect(screen.isAlternate()).toBe(false)
  expect(screen.raw().split('The connection was lost')[0]).toContain('\u001b[?25h')
  line.repair()
  await screen.shows(/^24 80\nthe whole screen$/m)
  expect(screen.isAlternate()).toBe(true)
  expect(screen.text()).not.toContain('sandlot:')
  screen.type('\u0003')
  await screen.ended
  expect(screen.isAlternate()).toBe(false)
})

test.concurrent('after reconnecting, `exec -it` shows the output that was printed during the outage', async () => {
  await using line = await openLine(world.url())
  const script = 'echo it is up; while [ ! -e go ]; do sleep 0.05; done; echo last words; exit 4'
  const shell = openClient(['-it', '--', 'sh', '-c', script], line.url)
  await shell.shows('it is up')
  line.hold()
  await shell.shows('The connection was lost.')
  await user.run(['exec', '-n', 'touch', 'go'])
  await world.eventually(async () => (await user.run(['ps'])).stdout.includes('exited\t4'), 10_000)
  line.repair()
  await shell.shows('last words')
  await expectExit(shell, 4)
  expect(shell.screen().match(/it is up/g)).toHaveLength(1)
})

test.concurrent('Ctrl-C makes `exec -it` exit during an outage; `attach` can reconnect later', async () => {
  await using line = await openLine(world.url())
  const first = openClient(['-it', '--', 'sh'], line.url)
  await first.shows('$ ')
  first.type('Y=kept\r')
  await first.shows('$ ')
  line.hold()
  await first.shows('sandlot attach -s sbx_')
  const execId = /attach -s sbx_\w+ (exec_\w+)/.exec(first.screen())![1]!
  first.type('\x03')
  await expectExit(first, 130)
  const second = attachClient([execId])
  await second.shows('$ ')
  await hasKept(second, 'Y')
  await second.shows('$ ')
  await exitShell(second, 6)
})

test.concurrent('pressing the detach keys leaves the command running', async () => {
  const first = openClient(['-it', '--', 'sh'])
  await first.shows('$ ')
  // Ctrl-P is forwarded if another key follows.
  first.type('\x10\x15Z=kept; echo is-$((1+1))\r')
  await first.shows('is-2')
  await first.shows('$ ')
  first.type('\x10\x11')
  await first.shows('detached; the command continues')
  await expectExit(first, 0)
  const way = /`sandlot attach (-s sbx_\w+ exec_\w+)` attaches to it again/.exec(first.screen())![1]!
  const second = attachClient([...way.split(' '), '--detach-keys', 'ctrl-a,d'])
  await second.shows('$ ')
  await hasKept(second, 'Z')
  await second.shows('$ ')
  second.type('\x01d')
  await second.shows('detached; the command continues')
  await expectExit(second, 0)
  const third = attachClient([...way.split(' '), '--detach-keys', 'none'])
  await third.shows('$ ')
  await exitShell(third, 7)
})

test('a shell without a custom prompt shows the session name in its prompt', async () => {
  const made = await user.run(['session', 'create', '--name', 'web one', '--quiet'])
  const id = made.stdout.trim()
  const named = openClient(['-s', id, '-it', '--', 'sh'], world.url(), 'tmux-256color')
  await named.shows('web one:/workspace$ ')
  named.type('echo "<$TERM>"; exit\r')
  await named.shows('<tmux-256color>')
  await expectExit(named, 0)
  const own = openClient(['-s', id, '-it', '--env', 'PS1=mine> ', '--', 'sh'])
  await own.shows('mine> ')
  own.type('exit\r')
  await expectExit(own, 0)
  // Runs last, because the allowlist applies to the whole account.
  await user.run(['allowlist', 'set', 'sh'])
  const listed = openClient(['-s', id, '-it', '--', 'sh'])
  await listed.shows('$ ')
  expect(listed.screen()).not.toContain('web one')
  listed.type('exit\r')
  await expectExit(listed, 0)
  await user.run(['allowlist', 'clear', '--yes'])
  await user.run(['session', 'rm', '--yes', id])
})

test.each(['a$(id)', 'a`id`', 'a\\w', 'a"b', "a'b", 'a!b', 'a%b', 'a\nb', 'ünï', '', 'x'.repeat(41), null])(
  'the shell prompt does not include the unsafe session name %j',
  (name) => {
    expect(promptFor(name)).toBeUndefined()
  },
)

test.each([
  [{ TERM: 'screen-256color' }, { TERM: 'screen-256color' }],
  [{ TERM: 'xterm-kitty', COLORTERM: 'truecolor' }, { TERM: 'xterm-256color' }],
  [{ TERM: 'made-up', COLORTERM: '' }, {}],
])('if the local environment contains %j, `exec -it` sets %j for the command', (ours, theirs) => {
  expect(terminalType(ours)).toEqual(theirs)
})

test('`exec -it` forwards all input typed before the detach keys', () => {
  const piece = fc.string({ unit: fc.constantFrom('a', 'b', 'c') })
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      let passed = ''
      const keys = new DetachKeys(Buffer.from('aab'), (bytes) => {
        passed += bytes
      })
      const isDetached = pieces.some((typed) => keys.type(Buffer.from(typed)))
      keys.end()
      const typed = pieces.join('')
      const at = typed.indexOf('aab')
      expect(isDetached).toBe(at >= 0)
      const held = /a{0,2}$/.exec(typed)![0]
      expect(passed).toBe(at >= 0 ? typed.slice(0, at) : typed.slice(0, typed.length - held.length))
    }),
  )
})

test('`exec` sends terminal input to the command only with -i', async () => {
  const without = openClient(['--', 'cat'])
  await expectExit(without, 0)
  const cat = openClient(['-i', '--', 'cat'])
  cat.type('typed\r')
  await cat.shows('typed')
  await cat.shows('typed')
  cat.type('\x04')
  await expectExit(cat, 0)
})

test('`exec -it` restores the terminal on SIGTERM', async () => {
  const shell = openClient(['-it', '--', 'sh', '-c', 'echo it is up; exec sleep 77.7'])
  await shell.shows('it is up')
  const clients = readdirSync('/proc').filter((pid) => {
    const args = commandLine(pid)
    return args[0] === process.execPath && args.includes(clientPath) && args.at(-1)?.includes('77.7')
  })
  expect(clients).toHaveLength(1)
  process.kill(Number(clients[0]), 'SIGTERM')
  await expectExit(shell, 143)
  await world.eventually(async () => !(await user.run(['ps'])).stdout.includes('running'), 10_000)
})

test('`ps`, `logs` and `kill` report a command as lost after its worker is killed', async () => {
  const later = (await user.run(['exec', '-n', '--background', 'sleep', '60'])).stdout.trim()
  const shell = openClient(['-it', '--', 'sh'])
  await shell.shows('$ ')
  await Promise.all(world.workers.map((worker) => worker.kill()))
  const started = world.startWorker()
  await shell.shows('the command was lost')
  await expectExit(shell, 125)
  await started
  const [listed, logs, kill] = await Promise.all([
    user.run(['ps']),
    user.run(['logs', '-f', later]),
    user.run(['kill', later]),
  ])
  expect(listed.stdout).toContain(`${later}\tlost\t`)
  expect(logs).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('the command was lost') })
  expect(kill).toMatchObject({ code: 5, stderr: expect.stringContaining('has already ended: lost: ') })
})

function commandLine(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)
  } catch {
    return [] // no process, or it has exited
  }
}
