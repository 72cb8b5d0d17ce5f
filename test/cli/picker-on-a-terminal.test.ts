import { once } from 'node:events'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { encodeTime } from 'ulid'
import { describe, expect, test } from 'vitest'
import { expectDurationBelow } from '../support/eventually.ts'
import { shareWorld } from '../support/shared.ts'
import { clientPath, Home } from './client.ts'
import { openLine } from './line.ts'
import { clipboardOf, openScreen, type Screen, type Size } from './screen.ts'
import { makeUsers, password, shareSession } from './users.ts'

const world = shareWorld({ env: { QUOTA_CONCURRENT_SANDBOXES: '5' } })
const users = makeUsers(world)

const picker = [process.execPath, clientPath]
/** Prints the picker's exit code and the final terminal modes. */
const thenReport = [
  'sh',
  '-c',
  '"$@"; echo "left with $?"; stty -a | tr " " "\\n" | grep -E "^-?(icanon|echo)$"',
  'sh',
]

const openPicker = (home: Home, env: Record<string, string> = {}, size?: Size): Screen =>
  openScreen([...thenReport, ...picker], home.environment(env), size)

/** Asserts that the picker exits with this code and restores the screen, the cursor and the modes. */
async function expectRestored(screen: Screen, code: number) {
  await screen.shows(`left with ${code}`)
  await screen.shows(/^icanon\necho$/m)
  expect(screen.isAlternate()).toBe(false)
  const raw = screen.raw()
  expect(raw.lastIndexOf('\u001b[?25h')).toBeGreaterThan(raw.lastIndexOf('\u001b[?25l'))
  expect(raw.lastIndexOf('\u001b[?2004l')).toBeGreaterThan(raw.lastIndexOf('\u001b[?2004h'))
}

/** Concurrent, because the tests mostly wait. */
describe.concurrent('the picker without settings', () => {
  test('in the picker, a user can sign up, create a session, work in it and destroy it', async () => {
    using home = new Home()
    const editor = join(home.folder, 'editor')
    writeFileSync(editor, '#!/bin/sh\necho EDITOR OPEN; read line; echo "$line" >> "$1"\n')
    chmodSync(editor, 0o755)
    using screen = openPicker(home, { EDITOR: editor })

    await screen.shows('Where is the service?')
    screen.type('http://example.com\r')
    await screen.shows('in cleartext')
    screen.type(`\u0015${world.url()}\r`)
    await screen.shows('Paste an API key')
    screen.type('\r')
    const email = users.newEmail()
    await screen.shows('Email')
    screen.type(`${email}\r${password}`)
    await screen.shows('•'.repeat(password.length))
    screen.type('\r')
    await screen.shows('No sessions')
    await screen.shows(new RegExp(`^${email} .* 0/5 sessions`))
    expect(screen.raw()).not.toContain('horse')
    const saved = readFileSync(home.configFile, 'utf8')
    expect(parse(saved)).toMatchObject({ base_url: world.url() })
    expect(saved).not.toContain('horse')

    screen.type('n')
    await screen.shows('New session')
    screen.type('web\r\r\r')
    await screen.shows(/^›web .*debian.* █{8} \d\d:\d\d/m)
    const [{ id }] = (await home.run(['session', 'ls', '--json'])).json().data

    screen.type('y')
    await screen.shows(`Copied: ${id}`)
    expect(clipboardOf(screen)).toBe(id)
    screen.type('u')
    await screen.shows('web is the current session.')
    await screen.shows(/^›web \* +debian/m)
    expect(parse(readFileSync(home.configFile, 'utf8'))).toMatchObject({ session: id })
    screen.type('c')
    await screen.shows('sandlot session create')
    screen.type('d')
    await screen.shows('Copied: sandlot')
    expect(clipboardOf(screen)).toBe(`sandlot session rm --yes ${id}`)

    screen.type('s')
    await screen.hides('SESSIONS')
    screen.type('echo $((6*7)) > answer; echo it is $(cat answer)\r')
    await screen.shows('it is 42')
    expect(screen.isAlternate()).toBe(false)
    screen.type('\u0010\u0011')
    await screen.shows('Detached from web. The command is still running.')
    await screen.shows(/^›web .*▸ (ba)?sh$/m)
    screen.type('\r')
    await screen.shows(/▸ running .*\(terminal\) (ba)?sh$/m)
    screen.type('\r')
    await screen.hides('[Commands]')
    screen.type('exit 3\r')
    await screen.shows('The terminal in web has ended: exit 3')
    screen.type('q')
    await screen.shows('SESSIONS')

    // Output must appear while the command runs, without control sequences.
    screen.type('x')
    await screen.shows('a command for /bin/sh')
    screen.type('mkfifo go; printf "one\\033[2J two\\n"; read x < go; seq 100; exit 5\r')
    await screen.shows(/^one two$/m)
    await screen.shows('▸ running')
    expect(await home.run(['exec', '--', 'sh', '-c', 'echo > go'])).toMatchObject({ code: 0 })
    await screen.shows('✗ exit 5')
    await screen.shows(/^100$/m)
    screen.type('g')
    await screen.shows(/^one two$/m)
    await screen.hides(/^100$/m)
    screen.type('q')
    await screen.shows(/^›web .*✓ sh -c 'echo > go'/m)

    screen.type('x')
    await screen.shows('a command for /bin/sh')
    screen.type('\u001b[200~echo waiting\nsleep 99\u001b[201~')
    await screen.shows('› web $ echo waiting↵sleep 99')
    screen.type('\r')
    await screen.shows(/^waiting$/m)
    screen.type('\u0003')
    await screen.shows(/✗ (SIGINT|exit 130) after/)
    await screen.shows('Interrupted the command.')
    screen.type('q')
    await screen.shows('SESSIONS')

    screen.type('f')
    await screen.shows('[Files]')
    await screen.shows(/answer +3 B/)
    screen.type('j')
    await screen.shows(/^› answer/m)
    screen.type('e')
    await screen.shows('EDITOR OPEN')
    expect(screen.isAlternate()).toBe(false)
    screen.type('from the editor\r')
    await screen.shows('web:/workspace/answer is saved.')
    expect((await home.run(['files', 'view', 'answer'])).stdout).toBe('42\nfrom the editor\n')
    screen.type('\t')
    await screen.shows('[Commands]')
    await screen.shows(/✗ exit 5 .* mkfifo go/)
    screen.type('?')
    await screen.shows("Keys for the session's commands")
    screen.type('\u001b')
    await screen.shows('[Commands]')
    screen.type('q')
    await screen.shows('SESSIONS')

    screen.type('d')
    await screen.shows('Destroy web? [y/N]')
    screen.type('n')
    await screen.hides('[y/N]')
    screen.type('d')
    await screen.shows('Destroy web? [y/N]')
    screen.type('y')
    await screen.shows('Session web was destroyed.')
    screen.type('q')
    await expectRestored(screen, 0)
  })

  test('the picker accepts a pasted key, and prompts again if a key is rejected', async () => {
    using user = await users.newUser()
    using home = new Home()
    const key = String(parse(readFileSync(user.home.configFile, 'utf8')).api_key)
    using screen = openPicker(home, { SANDLOT_URL: world.url() })
    await screen.shows('Paste an API key')
    screen.type('j\r')
    await screen.shows('› API key')
    screen.type('\u001b[200~sandlot_live_wrong\r\n\u001b[201~')
    await screen.shows('••••')
    screen.type('\r')
    await screen.shows('! ')
    screen.type(`\u0015${key}\r`)
    await screen.shows('No sessions')
    expect(screen.raw()).not.toContain(key)
    expect(parse(readFileSync(home.configFile, 'utf8'))).toEqual({ base_url: world.url(), api_key: key })

    const keys = (...args: string[]) =>
      user.run(['keys', ...args, '--email', user.email, '--password-stdin'], { input: password })
    const [{ id }] = (await keys('ls', '--json')).json().data
    await keys('rm', id, '--yes')
    await screen.shows('Paste an API key')
    screen.type('\u001b\u001b')
    await screen.hides('Paste an API key')
    screen.type('\u0003')
    await expectRestored(screen, 130)
  })
})

describe.concurrent('the picker with settings', () => {
  const user = shareSession(users)

  test('every page of the picker shows why the session ended', async () => {
    await using own = await users.newSession()
    const made = await own.run(['session', 'create', '--name', 'short', '--ttl', '59s'])
    expect(made).toMatchObject({ code: 0 })
    using screen = openPicker(own.home)
    await screen.shows(/^›short .* 0:\d\d/m)
    screen.type('\r')
    await screen.shows(/‹ short +█*░* 0:\d\d/)
    // Lets the session expire. The reconciler runs every second.
    await world.db.query("update sandbox set expires_at = sandlot_now() where name = 'short'")
    await screen.shows('Session short has ended: its TTL has expired.')
    await screen.shows(/! Ended at \d\d:\d\d:\d\d: its TTL has expired/)
    screen.type('x')
    await screen.shows('! Session short has ended: its TTL has expired.')
    screen.type('\u001b')
    await screen.hides('a command for /bin/sh')
    screen.type('q')
    await screen.shows(/^›sbx_/m)
    screen.type('a')
    await screen.shows(/short .*expired \d+s ago/)
    screen.type('q')
    await expectRestored(screen, 0)
  })

  test('the picker shows when an outage began, and reports when the service is available again', async () => {
    const line = await openLine(world.url())
    await using _ = line
    using screen = openPicker(user.home, user.home.through(line.url))
    await screen.shows(/^›sbx_/m)
    await line[Symbol.asyncDispose]()
    await screen.shows(/! Service unavailable since \d\d:\d\d:\d\d \(\d+s\), retrying/)
    await screen.shows(/^›sbx_/m)
    await using _again = await openLine(world.url(), Number(new URL(line.url).port))
    await screen.shows('The service is available again.')
    await screen.hides('Service unavailable')
    screen.type('q')
    await expectRestored(screen, 0)
  })

  test('the picker opens during an outage and loads the sessions once the service is reachable', async () => {
    const line = await openLine(world.url())
    await line[Symbol.asyncDispose]()
    using screen = openPicker(user.home, user.home.through(line.url))
    await screen.shows(/does not answer[\s\S]*Service unavailable/)
    await using _again = await openLine(world.url(), Number(new URL(line.url).port))
    await screen.shows(/^›sbx_/m)
  })

  test('the picker shows that the service does not respond, and can still be quit', async () => {
    await using silent = createServer((socket) => socket.on('error', () => {}).resume())
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    using screen = openPicker(user.home, user.home.through(`http://127.0.0.1:${port}`))
    await screen.shows('The service has not replied yet.')
    const left = performance.now()
    screen.type('q')
    await expectRestored(screen, 0)
    expectDurationBelow(performance.now() - left, 10_000)
  })

  test('the picker fills the terminal at any size', async () => {
    using screen = openPicker(user.home)
    await screen.shows('AGE')
    for (const [rows, columns] of [
      [12, 40],
      [50, 132],
      [5, 20],
      [24, 80],
    ] as const) {
      screen.resize(rows, columns)
      await screen.shows(new RegExp(`^─{${columns}}$`, 'm'))
      await world.eventually(
        () => screen.rows()[0]?.includes('@') && screen.rows().at(-1)?.includes('q quit'),
        5_000,
      )
      expect(screen.emulator.buffer.active.length).toBe(rows)
    }
  })

  test('any of a thousand sessions can be selected in the picker with a few key presses', async () => {
    using other = await users.newUser()
    await world.db.query(
      `insert into sandbox (id, account_id, name, image, pod_name, created_at, ready_at, expires_at, max_expires_at, destroyed_at, destroy_reason, reaped_at)
       select 'sbx_' || ? || lpad((1001 - n)::text, 16, '0'), (select id from account where email = ?), 'job-' || n, 'debian', 'sbx-' || gen_random_uuid(),
              now() - n * interval '1 s', now(), now(), now(), now(), 'expired', now()
         from generate_series(1, 1000) n`,
      [encodeTime(Date.now()).toLowerCase(), other.email],
    )
    using screen = openPicker(other.home)
    await screen.shows('No sessions')
    screen.type('a')
    await screen.shows(/^›job-1 /m)
    for (let at = 100; at <= 1000; at += 100) {
      screen.type('G')
      await screen.shows(at === 1000 ? '1000 of 1000' : new RegExp(`${at} of ${at + 100}`))
    }
    await screen.shows(/^›job-1000 /m)
    const before = screen.raw().length
    for (let step = 0; step < 100; step++) screen.type('k')
    await screen.shows(/^›job-900 /m)
    expect((screen.raw().length - before) / 100).toBeLessThan(4_000)
    screen.type('/')
    await screen.shows('words of name')
    screen.type('job-77\r')
    await screen.shows('1 of 11')
    screen.type('g')
    await screen.shows(/^›job-77 /m)
  })

  test('the picker shows the same text with and without color', async () => {
    using plain = openPicker(user.home, { NO_COLOR: '1' })
    await plain.shows(/^›sbx_.* \d\d:\d\d/m)
    const sequences = plain.raw().split('\u001b[')
    expect(sequences.filter((sequence) => /^[\d;]*m/.test(sequence))).toEqual([])
    using colored = openPicker(user.home)
    await colored.shows(/^›sbx_.* \d\d:\d\d/m)
    expect(colored.raw()).toContain('\u001b[32m█')
  })

  test('for screen readers, the picker draws plain text on the main screen', async () => {
    using screen = openPicker(user.home, { INK_SCREEN_READER: 'true' })
    await screen.shows(/\d+ min left/)
    expect(screen.text()).toContain(user.email)
    expect(screen.text()).toMatch(/selected.*sbx_/)
    expect(screen.text()).not.toMatch(/[█░─]/)
    expect(screen.isAlternate()).toBe(false)
    screen.type('q')
    await screen.shows('left with 0')
  })

  describe('restoring the terminal', () => {
    test.each([
      ['SIGTERM', 143],
      ['SIGHUP', 129],
      ['SIGINT', 130],
    ] as const)('the picker restores the terminal on %s', async (signal, code) => {
      using screen = openPicker(user.home, writesPid)
      await screen.shows(/^›sbx_/m)
      process.kill(pidOf(screen), signal)
      await expectRestored(screen, code)
    })

    test('the picker restores the terminal after a crash and reports the error', async () => {
      using screen = openPicker(user.home, writesPid)
      await screen.shows(/^›sbx_/m)
      process.kill(pidOf(screen), 'SIGUSR2')
      await expectRestored(screen, 1)
      expect(screen.text()).toContain('a crash for a test')
    })
  })
})

test('without a terminal, the picker prints help to stderr and exits with code 2', async () => {
  using home = new Home()
  const { code, stdout, stderr } = await home.run([])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain('session')
})

/** Puts the picker's pid in the terminal title, and crashes on SIGUSR2. */
const writesPid = {
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(
    [
      "process.stdout.write('\\x1b]0;pid ' + process.pid + '\\x07')",
      "process.on('SIGUSR2', () => { throw new Error('a crash for a test') })",
    ].join(';'),
  )}`,
}
const pidOf = (screen: Screen) => Number(/\]0;pid (\d+)/.exec(screen.raw())![1])
