/** `sandlot exec -it`: a terminal in a sandbox, over connections that break, given back on every way out. */
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

/** A terminal of 33 rows and 99 columns, in which the client runs, then `stty` tells what it left. */
const openClient = (words: string[], url = world.url(), TERM = 'xterm', name = 'exec'): Terminal => {
  const client = [process.execPath, clientPath, name, '-s', user.id, ...words]
  return openTerminal(
    ['sh', '-c', 'trap : INT; stty rows 33 cols 99; "$@"; echo "code $?"; stty -a', 'sh', ...client],
    user.home.environment({ ...user.home.through(url), TERM }),
  )
}

const attachClient = (words: string[]) => openClient(words, world.url(), 'xterm', 'attach')

/** A variable that was set over an earlier connection is there. */
async function hasKept(terminal: Terminal, variable: string) {
  terminal.type(`echo is-$${variable}\r`)
  await terminal.shows('is-kept')
}

/** Leaves the shell, and the client with it, by this code. */
async function exits(terminal: Terminal, code: number) {
  terminal.type(`exit ${code}\r`)
  await leaves(terminal, code)
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

test('-t with --background is refused, and nothing is started', async () => {
  const terminal = openClient(['-it', '--background', '--', 'sleep', '60'])
  await leaves(terminal, 125)
  expect(terminal.screen()).toContain('-t keeps this terminal')
  expect((await user.run(['ps', '--quiet'])).stdout).toBe('')
})

test('a shell that ends with its session says so on a line of its own', async () => {
  const other = (await user.run(['session', 'create'])).stdout.trim()
  const shell = openClient(['-s', other, '-it', '--', 'sh'])
  await shell.shows('$ ')
  await user.run(['session', 'rm', other])
  await shell.shows('\r\nsandlot: the session has ended (it was destroyed on request)')
  await leaves(shell, 125)
})

// At once: each has a terminal of its own, and mostly waits.
test.concurrent('a shell without -it runs and ends, and the way to a terminal is said', async () => {
  const shell = openClient(['sh'])
  await shell.shows('`sandlot exec -it -- sh` gives it this terminal')
  await leaves(shell, 0)
  const script = openClient(['sh', '-c', 'echo is-$((1+1))'])
  await script.shows('is-2')
  await leaves(script, 0)
  expect(script.screen()).not.toContain('-it')
})

test.concurrent('-it gives the command this terminal: keys, size, exit code; and gives it back as it was', async () => {
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
  await exits(shell, 5)
})

test.concurrent('a command that ends before it could be attached to still shows all it printed', async () => {
  const quick = openClient(['-it', '--', 'sh', '-c', 'echo quick as can be; exit 3'])
  await quick.shows('quick as can be')
  await leaves(quick, 3)
})

test.concurrent('a connection that breaks is made again, and what was shown is not shown twice', async () => {
  await using line = await openLine(world.url())
  const shell = openClient(['-it', '--', 'sh'], line.url)
  await shell.shows('$ ')
  shell.type('X=kept; echo shown-$((2-1))-time\r')
  await shell.shows('shown-1-time')
  await shell.shows('$ ')
  line.cut()
  await shell.shows('The connection broke.')
  await shell.shows('attached again')
  await hasKept(shell, 'X')
  await exits(shell, 6)
  expect(shell.screen().match(/shown-1-time/g)).toHaveLength(1)
})

test.concurrent('attached again, a program on a screen of its own draws it anew, without the words of the client', async () => {
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
  await screen.shows('The connection broke.')
  // While the terminal is the user's, it is as the user had it.
  expect(screen.isAlternate()).toBe(false)
  expect(screen.raw().split('The connection broke')[0]).toContain('\u001b[?25h')
  line.repair()
  await screen.shows(/^24 80\nthe whole screen$/m)
  expect(screen.isAlternate()).toBe(true)
  expect(screen.text()).not.toContain('sandlot:')
  screen.type('\u0003')
  await screen.ended
  expect(screen.isAlternate()).toBe(false)
})

test.concurrent('what a command printed last, while the connection was away, is shown when it is back', async () => {
  await using line = await openLine(world.url())
  const script = 'echo it is up; while [ ! -e go ]; do sleep 0.05; done; echo last words; exit 4'
  const shell = openClient(['-it', '--', 'sh', '-c', script], line.url)
  await shell.shows('it is up')
  line.hold()
  await shell.shows('The connection broke.')
  await user.run(['exec', '-n', 'touch', 'go'])
  await world.eventually(async () => (await user.run(['ps'])).stdout.includes('exited\t4'), 10_000)
  line.repair()
  await shell.shows('last words')
  await leaves(shell, 4)
  expect(shell.screen().match(/it is up/g)).toHaveLength(1)
})

test.concurrent('Ctrl-C leaves while the connection is away, and attach goes back', async () => {
  await using line = await openLine(world.url())
  const first = openClient(['-it', '--', 'sh'], line.url)
  await first.shows('$ ')
  first.type('Y=kept\r')
  await first.shows('$ ')
  line.hold()
  await first.shows('sandlot attach -s sbx_')
  const execId = /attach -s sbx_\w+ (exec_\w+)/.exec(first.screen())![1]!
  first.type('\x03')
  await leaves(first, 130)
  const second = attachClient([execId])
  await second.shows('$ ')
  await hasKept(second, 'Y')
  await second.shows('$ ')
  await exits(second, 6)
})

test.concurrent('the detach keys leave the command running, and the way back is said', async () => {
  const first = openClient(['-it', '--', 'sh'])
  await first.shows('$ ')
  // Ctrl-P and then another key are keys like any other.
  first.type('\x10\x15Z=kept; echo is-$((1+1))\r')
  await first.shows('is-2')
  await first.shows('$ ')
  first.type('\x10\x11')
  await first.shows('detached, and the command goes on')
  await leaves(first, 0)
  const way = /`sandlot attach (-s sbx_\w+ exec_\w+)` goes back to it/.exec(first.screen())![1]!
  const second = attachClient([...way.split(' '), '--detach-keys', 'ctrl-a,d'])
  await second.shows('$ ')
  await hasKept(second, 'Z')
  await second.shows('$ ')
  second.type('\x01d')
  await second.shows('detached, and the command goes on')
  await leaves(second, 0)
  const third = attachClient([...way.split(' '), '--detach-keys', 'none'])
  await third.shows('$ ')
  await exits(third, 7)
})

test.concurrent('keys that are none are refused before anything is started', async () => {
  const terminal = openClient(['-it', '--detach-keys', 'ctrl-1', '--', 'sh'])
  await leaves(terminal, 125)
  expect(terminal.screen()).toContain('--detach-keys "ctrl-1" names no keys')
})

test('a shell without a prompt of its own shows the name of its session, and has our colours', async () => {
  const made = await user.run(['session', 'create', '--name', 'web one', '--quiet'])
  const id = made.stdout.trim()
  const named = openClient(['-s', id, '-it', '--', 'sh'], world.url(), 'tmux-256color')
  await named.shows('web one:/workspace$ ')
  named.type('echo "<$TERM>"; exit\r')
  await named.shows('<tmux-256color>')
  await leaves(named, 0)
  const own = openClient(['-s', id, '-it', '--env', 'PS1=mine> ', '--', 'sh'])
  await own.shows('mine> ')
  own.type('exit\r')
  await leaves(own, 0)
  // Last, because the list is the account's.
  await user.run(['allowlist', 'set', 'sh'])
  const listed = openClient(['-s', id, '-it', '--', 'sh'])
  await listed.shows('$ ')
  expect(listed.screen()).not.toContain('web one')
  listed.type('exit\r')
  await leaves(listed, 0)
  await user.run(['allowlist', 'clear', '--yes'])
  await user.run(['session', 'rm', '--yes', id])
})

test.each(['a$(id)', 'a`id`', 'a\\w', 'a"b', "a'b", 'a!b', 'a%b', 'a\nb', 'ünï', '', 'x'.repeat(41), null])(
  'the name %j stands in no prompt',
  (name) => {
    expect(promptFor(name)).toBeUndefined()
  },
)

test.each([
  [{ TERM: 'screen-256color' }, { TERM: 'screen-256color' }],
  [{ TERM: 'xterm-kitty', COLORTERM: 'truecolor' }, { TERM: 'xterm-256color' }],
  [{ TERM: 'made-up', COLORTERM: '' }, {}],
])('a terminal with %j gives the command %j', (ours, theirs) => {
  expect(terminalType(ours)).toEqual(theirs)
})

test('whatever is typed passes, up to the detach keys, however it comes in pieces', () => {
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

test('stdin at a terminal is sent only with -i', async () => {
  const without = openClient(['--', 'cat'])
  await leaves(without, 0)
  const cat = openClient(['-i', '--', 'cat'])
  cat.type('typed\r')
  await cat.shows('typed')
  await cat.shows('typed')
  cat.type('\x04')
  await leaves(cat, 0)
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
  await world.eventually(async () => !(await user.run(['ps'])).stdout.includes('running'), 10_000)
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
    user.run(['ps']),
    user.run(['logs', '-f', later]),
    user.run(['kill', later]),
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
