import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { posixWord, quote, shellLine, shellWord } from '../../shared/contract/shell-words.ts'
import { shareWorld } from '../support/shared.ts'
import { clientPath, Home } from './client.ts'
import { clipboardOf, openScreen } from './screen.ts'
import { openTerminal } from './terminal.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld()
const users = makeUsers(world)

/** Ends a bracketed paste, clears the line and runs a command. */
const hostileName = 'README\u001b[201~\u0003\ntouch PWNED\n'

const hostileWords = [
  hostileName,
  '\u009b201~\u0003\rtouch PWNED\r',
  `'\u001b[201~\u0003\ntouch PWNED\n'`,
  "it's\n!!\n\\'; touch PWNED; '",
  'tab\t\ttab',
  'erased\u007f\u007f\u0015touch PWNED\r',
  'photo\u202egnp.exe',
  'line\u2028separator\u2029',
  Array.from({ length: 31 }, (_, code) => String.fromCharCode(code + 1)).join('7'),
  Array.from({ length: 33 }, (_, code) => String.fromCharCode(code + 0x7f)).join('7'),
  "'; touch PWNED; '",
  '$(touch PWNED)`touch PWNED`',
  '=ls',
  'naïve 語 👩‍👩‍👧',
  '',
]

/** Ignores the local user's shell settings. */
const commands: Record<string, string[]> = { bash: ['--norc', '--noprofile'], zsh: ['-f'] }
const isInstalled = (program: string) => spawnSync(program, ['-c', 'true'], { stdio: 'ignore' }).status === 0
const shells = Object.keys(commands).filter(isInstalled)

/** Pastes a line and presses Enter. @returns the arguments that `sandlot` received */
async function paste(shell: string, line: string, home: Home, isBracketed: boolean): Promise<string[]> {
  const got = join(home.folder, 'arguments')
  const terminal = openTerminal(
    ['sh', '-c', 'cd "$HOME" && exec "$@"', 'sh', shell, ...commands[shell]!, '-i'],
    home.environment({ LC_ALL: 'C.UTF-8', PS1: 'ready> ', HISTFILE: '/dev/null', INPUTRC: '/dev/null' }),
  )
  await terminal.shows('ready> ')
  if (!isBracketed)
    terminal.type(
      shell === 'bash' ? "bind 'set enable-bracketed-paste off'\r" : 'unset zle_bracketed_paste\r',
    )
  terminal.type(`sandlot() { printf '%s\\0' "$@" > ${quote(got)}; }; echo defined $((6 * 7))\r`)
  await terminal.shows('defined 42')
  await terminal.shows('ready> ')
  terminal.type(isBracketed ? `\u001b[200~${line}\u001b[201~\r` : `${line}\r`)
  await terminal.shows('ready> ')
  terminal.type('echo read $((7 * 9)); exit\r')
  await terminal.ended
  expect(terminal.screen()).toContain('read 63')
  return readFileSync(got, 'utf8').split('\0').slice(0, -1)
}

describe.each(shells)('pasted into %s', (shell) => {
  test.each([true, false])(
    'a pasted command line with hostile arguments runs only that command (bracketed paste: %s)',
    async (isBracketed) => {
      using home = new Home()
      const line = shellLine('sandlot', ...hostileWords)
      expect(await paste(shell, line, home, isBracketed)).toEqual(hostileWords)
      expect(existsSync(join(home.folder, 'PWNED'))).toBe(false)
    },
  )

  test('each argument of a pasted command line arrives byte for byte', () => {
    const letters = fc.oneof(
      fc.constantFrom(...'\'"\\!$`~#=07nx\t\n\u001b\u007f\u0085\u009b\u202e\u2028é語'),
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
    )
    const word = fc.array(letters).map((parts) => parts.join('').replaceAll('\0', ''))
    fc.assert(
      fc.property(fc.array(word, { minLength: 20, maxLength: 60 }), (words) => {
        const script = `printf '%s\\0' ${words.map(shellWord).join(' ')}`
        expect(script).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
        const printed = execFileSync(shell, [...commands[shell]!, '-c', script], {
          env: { PATH: process.env.PATH, LC_ALL: 'C' },
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        expect(printed).toEqual(Buffer.from(words.map((each) => `${each}\0`).join('')))
      }),
      { numRuns: 20 },
    )
  })
})

test('arguments for /bin/sh are quoted only with single quotes', () => {
  expect([posixWord(hostileName), quote(hostileName)]).toEqual([`'${hostileName}'`, `'${hostileName}'`])
  expect(posixWord("it's")).toBe(`'it'\\''s'`)
  expect(shellWord('a\u001b\n\u00852')).toBe("$'a\\033\\n\\302\\2052'")
})

describe('untrusted names', () => {
  const user = shareSession(users)

  test('the picker quotes a hostile name as a single argument when it copies a command line', async () => {
    const made = await user.run(['exec', '--', 'sh', '-c', 'mkdir d; echo inside > "d/$0"', hostileName])
    expect(made).toMatchObject({ code: 0 })
    using screen = openScreen([process.execPath, clientPath], user.home.environment(), { columns: 160 })
    await screen.shows('›sbx_')
    screen.type('f')
    await screen.shows('[Files]')
    await screen.shows('› d/')
    screen.type('\r')
    await screen.shows('README')
    screen.type('cv')
    await screen.shows('Copied: sandlot files view')
    const line = clipboardOf(screen)
    expect(line).not.toMatch(/\p{Cc}/u)
    const words = await paste('bash', line, user.home, true)
    expect(words).toEqual(['files', 'view', '-s', user.id, `/workspace/d/${hostileName}`])
    expect((await user.run(words)).stdout).toBe('inside\n')
  })

  test('hints and error messages quote hostile arguments, so pasting a suggested command is safe', async () => {
    const created = await user.run(['session', 'create', hostileName])
    expect(created.stderr).toContain(`session create --rm -- ${shellWord(hostileName)}`)
    const forwarded = await user.run(['forward', hostileName, '3000'])
    expect(forwarded.stderr).toContain(`forward --session ${shellWord(hostileName)} 3000`)
    const secret = await user.run(['secrets', 'create', hostileName, '--no-input'])
    expect(secret.stderr).toContain(shellWord(hostileName))
    for (const { stderr } of [created, forwarded, secret]) expect(stderr).not.toMatch(/^touch PWNED/m)
  })
})
