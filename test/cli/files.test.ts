import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { quote } from '../../shared/contract/shell-words.ts'
import { shareWorld } from '../support/shared.ts'
import { clientPath } from './client.ts'
import { openTerminal } from './terminal.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld()
const users = makeUsers(world)
const user = shareSession(users)

const files = (args: string[], input?: string | Uint8Array) =>
  user.run(['files', ...args], input === undefined ? {} : { input })
const local = (name: string) => join(world.folder, name)

test('`files edit` reads text from options or local files', async () => {
  await files(['create', 'edited', '--content', 'a\nb\na\n'])
  expect(await files(['edit', 'edited', '--old', 'b', '--new', 'B'])).toMatchObject({
    code: 0,
    stdout: '/workspace/edited\n',
  })
  const several = await files(['edit', 'edited', '--old', 'a', '--new', 'A', '--json'])
  expect(several.code).toBe(5)
  expect(several.json().error).toMatchObject({ code: 'edit_not_unique', lines: [1, 3] })
  expect(several.stderr).toMatch(
    /^sandlot: edited: .* Include more of the surrounding text, or use --all\.\n/,
  )
  writeFileSync(local('old'), 'a\n')
  const all = ['edit', 'edited', '--old-file', local('old'), '--new', '', '--all', '--json']
  expect((await files(all)).json()).toMatchObject({ replacements: 2, size: 2 })
  expect((await files(['view', 'edited'])).stdout).toBe('B\n')
  const changed = await files(['edit', 'edited', '--old', 'B', '--new', '', '--if-match', '0'.repeat(64)])
  expect(changed.code).toBe(5)
  expect(changed.stderr).toContain('edited: The file does not match --if-match')
  const again = await files(['create', 'edited', '--content', 'x'])
  expect(again.stderr).toMatch(/^sandlot: edited: The file already exists\.\n--overwrite replaces it\.\n/)
  expect(await files(['edit', 'edited', '--old', 'B'])).toMatchObject({ code: 2 })
})

test('`files edit` opens an editor if no text is given, and prints a diff', async () => {
  await files(['create', 'by-hand', '--content', 'one\ntwo\n'])
  const terminal = openTerminal([process.execPath, clientPath, 'files', 'edit', 'by-hand'], {
    ...user.home.environment(),
    EDITOR: "sed -i 's/two/2/'",
  })
  await terminal.shows('-two')
  await terminal.shows('+2')
  expect(await terminal.ended).toBe(0)
  expect((await files(['view', 'by-hand'])).stdout).toBe('one\n2\n')
})

test('`files edit` removes the local copy if the user presses Ctrl-C while the editor is open', async () => {
  await files(['create', 'interrupted', '--content', 'one'])
  const folder = mkdtempSync(local('copies-'))
  const terminal = openTerminal([process.execPath, clientPath, 'files', 'edit', 'interrupted'], {
    ...user.home.environment({ TMPDIR: folder }),
    EDITOR: 'trap : INT; echo EDITOR OPEN; sleep 1; :',
  })
  await terminal.shows('EDITOR OPEN')
  expect(readdirSync(folder)).toHaveLength(1)
  terminal.type('\u0003')
  expect(await terminal.ended).toBe(130)
  expect(readdirSync(folder)).toEqual([])
})

test('`files ls`, `glob` and `grep` print results in the same formats as their Unix counterparts', async () => {
  await user.run(['exec', '-c', 'mkdir -p d/e; echo Needle > "d/a b"; echo hay > d/e/c.txt; ln -s e d/l'])
  expect(await files(['ls', 'd'])).toMatchObject({ code: 0, stdout: 'a b\ne\nl\n', stderr: '' })
  expect((await files(['ls', '-l', 'd'])).stdout).toMatch(
    /^-rw-r--r-- +\S+ +\S+ +7 \S+Z a b\ndrwx\S+ +\S+ +\S+ +\d+ \S+Z e\nlrwxrwxrwx +\S+ +\S+ +1 \S+Z l -> e\n$/,
  )
  expect(await files(['glob', '**/*.txt', '--path', 'd'])).toMatchObject({ stdout: 'e/c.txt\n' })
  expect(await files(['grep', '-rni', 'needle', 'd'])).toMatchObject({ code: 0, stdout: 'd/a b:1:Needle\n' })
  expect(await files(['grep', 'needle', 'd'])).toMatchObject({ code: 1, stdout: '' })
  expect(await files(['grep', '-l', 'e|y', 'd'])).toMatchObject({ code: 0, stdout: 'd/a b\nd/e/c.txt\n' })
  expect((await files(['grep', '-F', 'hay', '--include', '*.txt', '--json'])).json().matches).toEqual([
    { path: 'd/e/c.txt', line: 1, text: 'hay' },
  ])
})

test('`files ls` on a terminal shows hidden names only with -a', async () => {
  await user.run(['exec', '-c', 'mkdir dots && cd dots && head -c 1536 /dev/zero > big && touch .hidden'])
  const shown = async (...more: string[]) => {
    const command = [process.execPath, clientPath, 'files', 'ls', 'dots', ...more]
    const terminal = openTerminal(command, { ...user.home.environment(), NO_COLOR: '1' })
    expect(await terminal.ended).toBe(0)
    return terminal.screen().replaceAll('\r', '')
  }
  expect(await shown()).toBe('big\nHidden entries: 1. Use -a to include names that start with a dot.\n')
  expect(await shown('-la')).toMatch(
    /^-rw\S+ +\S+ +\S+ +0 B +\d+ s ago \.hidden\n-rw\S+ +\S+ +\S+ 1\.54 kB +\d+ s ago big\n$/,
  )
  expect((await files(['ls', 'dots'])).stdout).toBe('.hidden\nbig\n')
  expect((await files(['ls', '-la', 'dots'])).stdout).toMatch(
    /^\S+ +\S+ +\S+ +0 \S+Z \.hidden\n\S+ +\S+ +\S+ 1536 \S+Z big\n$/,
  )
})

test('the error for a rejected `files mkdir`, `mv` or `rm` names the option that allows the change', async () => {
  const refused = async (args: string[], message: RegExp) => {
    const { code, stderr } = await files(args)
    expect({ code, stderr }).toEqual({ code: 5, stderr: expect.stringMatching(message) })
  }
  expect((await files(['mkdir', 'p/q', '--mode', '700', '--json'])).json()).toMatchObject({ created: true })
  expect((await files(['stat', 'p/q', '--json=type,mode'])).json()).toMatchObject({ type: 'directory' })
  await refused(['mkdir', 'p/q'], /^sandlot: p\/q: The directory already exists\. Pass --exist-ok to/)
  expect(await files(['mkdir', '-p', 'p/q'])).toMatchObject({ code: 0 })
  await files(['create', 'p/one', '--content', '1'])
  await files(['create', 'p/two', '--content', '2'])
  await refused(
    ['mv', 'p/one', 'p/two'],
    /^sandlot: p\/one: The file already exists\.\n--overwrite replaces it\.\n/,
  )
  expect(await files(['mv', 'p/one', 'p/two', '--overwrite'])).toMatchObject({ stdout: '/workspace/p/two\n' })
  expect(await files(['mv', 'p/two', 'p/q/'])).toMatchObject({ stdout: '/workspace/p/q/two\n' })
  await files(['create', 'p/.h/x', '--content', ''])
  expect((await files(['ls', '--depth', '2', 'p'])).stdout).toBe('p/.h\np/.h/x\np/q\np/q/two\n')
  expect(await files(['ls', '--depth', '0', 'p'])).toMatchObject({ code: 2 })
  const terminal = openTerminal([process.execPath, clientPath, 'files', 'ls', '--depth', '2', 'p'], {
    ...user.home.environment(),
    NO_COLOR: '1',
  })
  expect(await terminal.ended).toBe(0)
  expect(terminal.screen().replaceAll('\r', '')).toMatch(/^p\/q\np\/q\/two\nHidden entries: 2\./)
  await files(['chmod', '600', 'p/q/two'])
  expect((await files(['stat', 'p/q/two'])).stdout).toMatch(
    /^-rw------- +\S+ +\S+ +1 \S+Z \/workspace\/p\/q\/two\n$/,
  )
  await refused(['rm', 'p'], /^sandlot: p: The path is a directory\. Pass --recursive to remove it/)
  expect((await files(['rm', '-r', 'p', '--json'])).json()).toMatchObject({ removed: true })
  expect(await files(['rm', 'p'])).toMatchObject({ code: 3 })
  expect(await files(['rm', '-f', 'p'])).toMatchObject({ code: 0 })
})

test('`files put` and `files get` copy binary data between a session and local files, folders and pipes', async () => {
  const bytes = randomBytes(12_000_000)
  writeFileSync(local('big'), bytes)
  expect(await files(['put', local('big'), 'in/'])).toMatchObject({ code: 0, stdout: '/workspace/in/big\n' })
  expect(await files(['get', 'in/big', local('back')])).toMatchObject({ code: 0 })
  expect(readFileSync(local('back')).equals(bytes)).toBe(true)
  expect((await files(['get', 'in/big', '-'])).bytes.equals(bytes)).toBe(true)
  const onStart = (child: ChildProcess) => child.stdout!.once('data', () => child.stdout!.destroy())
  const head = await user.run(['files', 'get', 'in/big', '-'], { onStart })
  expect(head).toMatchObject({ code: 0, stderr: '' })
  expect(await files(['put', '-', 'piped', '--mode', '750'], 'from stdin')).toMatchObject({ code: 0 })
  expect((await files(['get', 'piped', world.folder, '--json'])).json()).toMatchObject({
    local: local('piped'),
    size: 10,
  })
  expect(await files(['put', '-', 'piped', '--no-overwrite'], 'x')).toMatchObject({ code: 5 })
  expect(await files(['put', local('nothing'), 'x'])).toMatchObject({ code: 1 })
  expect(await files(['get', 'nothing', local('none')])).toMatchObject({ code: 3 })
  expect(readdirSync(world.folder).filter((name) => name.includes('none') || name.endsWith('.part'))).toEqual(
    [],
  )
})

test('`files` commands neutralize control characters on a terminal, but not in a pipe', async () => {
  using owner = await users.newUser()
  const nasty = 'a\u001b[2J\u202eb\u009b31m\tc'
  const created = await owner.run(['session', 'create', '--name', nasty])
  expect(created).toMatchObject({ code: 0 })
  await owner.run(['files', 'put', '-', `d/${nasty}`], { input: `x\r\n${nasty}` })
  const lines = [
    ['session', 'ls'],
    ['session', 'get'],
    ['session', 'get', '--json'],
    ['files', 'ls', 'd'],
    ['files', 'glob', '**', '--path', 'd'],
    ['files', 'grep', 'a', 'd'],
    ['files', 'view', `d/${nasty}`],
    ['files', 'get', `d/${nasty}`, '-'],
    ['session', 'ls', `--no ${nasty}`],
  ]
  // biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
  const steers = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e]/
  for (const line of lines) {
    const words = [process.execPath, clientPath, ...line].map(quote).join(' ')
    const terminal = openTerminal(['sh', '-c', words], owner.home.environment({ NO_COLOR: '1', CI: '1' }))
    await terminal.ended
    expect(terminal.screen(), line.join(' ')).not.toMatch(steers)
    expect(terminal.screen(), line.join(' ')).toMatch(/a(\ufffd|\\u001b)\[2J/)
  }
  expect((await owner.run(['session', 'get'])).stdout).toContain(nasty.replace('\t', ' '))
  expect((await owner.run(['session', 'ls'])).stdout).toContain(nasty.replace('\t', ' '))
  expect((await owner.run(['files', 'ls', 'd'])).stdout).toBe(`${nasty}\n`)
  expect((await owner.run(['files', 'view', `d/${nasty}`])).stdout).toBe(`x\r\n${nasty}`)
  const completed = await owner.run(['__complete', '--', 'session', 'get', ''])
  expect(completed.stdout).toContain(`${created.stdout.trim()}\ta\ufffd[2J\ufffdb\ufffd31m c\n`)
  await owner.run(['session', 'rm', '--yes'])
})
