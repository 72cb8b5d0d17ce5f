import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { clientPath, runProcess } from './client.ts'
import { openTerminal } from './terminal.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld()
const user = shareSession(makeUsers(world))

const local = (name: string) => join(world.folder, name)
const cp = (...args: string[]) => user.run(['cp', ...args])
const bytes = randomBytes(9_000_000)

function makeFolder(name: string): string {
  mkdirSync(join(local(name), 'sub'), { recursive: true })
  writeFileSync(join(local(name), 'big'), bytes)
  writeFileSync(join(local(name), 'sub', 'run'), '#!/bin/sh\n')
  chmodSync(join(local(name), 'sub', 'run'), 0o755)
  symlinkSync('sub/run', join(local(name), 'link'))
  return local(name)
}

test('`cp` copies files to the target path, or into the target if it is a folder', async () => {
  writeFileSync(local('one'), 'one')
  const there = `${user.id}:cp/deep/one`
  expect(await cp(local('one'), there)).toMatchObject({
    code: 0,
    stdout: `${user.id}:/workspace/cp/deep/one\n`,
    stderr: '',
  })
  expect((await cp(local('one'), ':cp/deep', '--json')).json()).toMatchObject({ bytes: 3 })
  expect(await cp(there, local('two'))).toMatchObject({ code: 0, stdout: `${local('two')}\n` })
  expect(readFileSync(local('two'), 'utf8')).toBe('one')
  expect(await cp(there, local('n'.repeat(255)))).toMatchObject({ code: 0 })
  mkdirSync(local('into'))
  expect(await cp(there, local('into'))).toMatchObject({ code: 0, stdout: `${local('into/one')}\n` })
  expect(await cp(there, '-')).toMatchObject({ code: 0, stdout: 'one' })
  expect(await user.run(['cp', '-', ':cp/piped'], { input: 'piped' })).toMatchObject({ code: 0 })
  expect((await user.run(['files', 'ls', 'cp'])).stdout).toBe('deep\npiped\n')
  await user.run(['session', 'create', '--name', 'box'])
  expect(await cp(local('one'), 'box:')).toMatchObject({ code: 0, stdout: 'box:/workspace/one\n' })
  expect(await cp('box:one', '-')).toMatchObject({ code: 0, stdout: 'one' })
  await user.run(['session', 'rm', '--yes', 'box'])
})

test('`cp` copies folders with their modes and links, like `cp -rp`', async () => {
  const source = makeFolder('tree')
  // Copies to a new path, then into the existing folder.
  for (const path of ['trees/new', 'trees/new/tree'])
    expect(await cp(source, ':trees/new')).toMatchObject({
      code: 0,
      stdout: `:/workspace/${path}\n`,
      stderr: '',
    })
  await user.run(['exec', '-c', 'echo old > trees/new/sub/old; mkdir empty'])
  expect(await cp(`${source}/.`, ':trees/new')).toMatchObject({ code: 0 })
  const listed = await user.run(['exec', '-c', 'cd trees/new; find . | sort; stat -c %a sub/run; cat link'])
  expect(listed.stdout.split('\n').slice(0, -3)).toEqual(
    '. ./big ./link ./sub ./sub/old ./sub/run ./tree ./tree/big ./tree/link ./tree/sub ./tree/sub/run'.split(
      ' ',
    ),
  )
  expect(listed.stdout).toMatch(/\n755\n#!\/bin\/sh\n$/)

  mkdirSync(local('out'))
  for (const path of ['out/new', 'fresh'])
    expect(await cp(':trees/new', local(path.replace('/new', '')))).toMatchObject({
      code: 0,
      stdout: `${local(path)}\n`,
    })
  expect(readFileSync(local('fresh/tree/big')).equals(bytes)).toBe(true)
  expect(readFileSync(local('out/new/link'), 'utf8')).toBe('#!/bin/sh\n')
  expect(statSync(local('out/new/sub/run')).mode & 0o777).toBe(0o755)
  expect(await cp(':empty/.', local('out'))).toMatchObject({ code: 0 })
  expect(readdirSync(local('out'))).toEqual(['new'])
  const listing = await cp(':trees/new/sub', '-')
  expect(listing.bytes.subarray(0, 2).toString()).toBe('./')

  // `ps` marks the command that a folder copy runs.
  const ps = openTerminal([process.execPath, clientPath, 'ps'], user.home.environment())
  await ps.ended
  expect(ps.screen().match(/ \(sandlot cp\) /g)).toHaveLength(7)
  expect(ps.screen()).toContain('  cd trees/new;')
})

test('`cp` writes to local pipes and devices, and follows local links', async () => {
  await user.run(['files', 'create', 'small', '--content', 'small'])
  symlinkSync('linked', local('to-file'))
  symlinkSync('made/later', local('to-nothing'))
  mkdirSync(local('made'))
  symlinkSync('/dev/null', local('to-null'))
  writeFileSync(local('linked'), 'old')
  execFileSync('mkfifo', [local('fifo')])
  for (const command of [
    ['cp', ':small'],
    ['files', 'get', 'small'],
  ]) {
    const reading = readFile(local('fifo'), 'utf8')
    for (const name of ['fifo', 'to-file', 'to-nothing', 'to-null'])
      expect(await user.run([...command, local(name)]), name).toMatchObject({ code: 0 })
    expect(await reading).toBe('small')
  }
  expect(statSync(local('fifo')).isFIFO()).toBe(true)
  for (const name of ['to-file', 'to-nothing', 'to-null'])
    expect(lstatSync(local(name)).isSymbolicLink(), name).toBe(true)
  for (const name of ['linked', 'made/later']) expect(readFileSync(local(name), 'utf8')).toBe('small')
  expect(statSync('/dev/null').isCharacterDevice()).toBe(true)
  // The shell's open file must receive the content, so the file cannot be replaced.
  const descriptor = openSync(local('opened'), 'w')
  const { environment } = user.home
  const child = spawn(process.execPath, [clientPath, 'cp', '-q', ':small', '/dev/fd/3'], {
    env: environment.call(user.home),
    stdio: ['ignore', 'ignore', 'inherit', descriptor],
  })
  expect(await once(child, 'close')).toEqual([0, null])
  closeSync(descriptor)
  expect(readFileSync(local('opened'), 'utf8')).toBe('small')
})

test('`files put` copies data from a local pipe into the session', async () => {
  execFileSync('mkfifo', [local('source')])
  const sending = user.run(['files', 'put', local('source'), 'from-pipe'])
  await writeFile(local('source'), 'piped')
  expect(await sending).toMatchObject({ code: 0 })
  expect(await cp(':from-pipe', '-')).toMatchObject({ stdout: 'piped' })
})

test.each([
  ['read', (pipe: string) => ['cp', ':waiting', pipe]],
  ['written', (pipe: string) => ['cp', pipe, ':waiting/new']],
])('Ctrl-C stops a copy blocked on a pipe that is not being %s', async (name, argsOf) => {
  const pipe = local(`never-${name}`)
  execFileSync('mkfifo', [pipe])
  await user.run(['files', 'create', 'waiting', '--overwrite', '--content', 'x'])
  const ran = user.run([...argsOf(pipe), '--debug'], {
    onStart: (child) => child.stderr!.once('data', () => child.kill('SIGINT')),
  })
  expect(await ran).toMatchObject({ code: 130 })
})

test('the client rejects arguments that are not valid UTF-8', async () => {
  const run = (words: string) =>
    runProcess('bash', ['-c', `"$0" "$@" ${words}`, process.execPath, clientPath], user.home.environment())
  expect(await run("exec -- printf %s $'a\\xff'")).toMatchObject({
    code: 125,
    stdout: '',
    stderr: expect.stringContaining('is not valid UTF-8'),
  })
  for (const words of ["files view $'caf\\xe9'", "cp $'caf\\xe9' :"])
    expect(await run(words), words).toMatchObject({ code: 2, stdout: '' })
})

test('`cp` copies secrets without redaction and reports skipped entries', async () => {
  await user.run(['secrets', 'create', 'TOKEN'], { input: 'hunter2-hunter2' })
  await user.run(['exec', '-c', 'mkdir -p odd; echo hunter2-hunter2 > odd/it; ln -s /etc/passwd odd/out'])
  expect(await cp(':odd', local('odd'))).toMatchObject({
    code: 9,
    stdout: `${local('odd')}\n`,
    stderr: 'sandlot: not copied: ./out: a link to /etc/passwd points outside the folder\n',
  })
  expect(readFileSync(local('odd/it'), 'utf8')).toBe('hunter2-hunter2\n')
  await user.run(['secrets', 'rm', '--yes', 'TOKEN'])
})

test('`cp` reports why each copy failed', async () => {
  const folder = makeFolder('refused')
  await user.run(['files', 'create', 'a-file', '--content', 'x'])
  const fails = async (args: string[], code: number, words: string) =>
    expect(await cp(...args)).toMatchObject({ code, stderr: expect.stringContaining(words) })
  await fails([folder, ':a-file'], 1, 'a-file is a file')
  await fails([':nothing', local('x')], 3, 'No file exists at this path')
  await fails([local('nothing'), ':x'], 1, 'cannot be read')
  await fails([folder, local('x')], 2, 'Use SESSION:PATH')
  await fails([':a', ':b'], 2, 'must be local')
  await fails(['a:b.txt', ':'], 2, 'use ./a:b.txt')
  await fails([':x', 'a:b.txt'], 2, 'use ./a:b.txt')
  writeFileSync(local('no-session:b.txt'), '')
  expect(await user.run(['cp', 'no-session:b.txt', 'x'], { cwd: world.folder })).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('use ./no-session:b.txt'),
  })
  await fails([`${user.id}x:a`, local('x')], 3, `${user.id}x`)
  await user.run(['exec', '-c', 'mkdir a-folder'])
  await fails([':a-folder', join(folder, 'big')], 1, 'is a file')
  await fails([folder, ':/proc/none'], 1, 'The folder was not copied: mkdir:')
  await user.run(['allowlist', 'set', 'ls'])
  await fails([folder, ':x'], 1, 'Copy the files one by one')
  await fails([join(folder, 'sub', 'run'), ':x'], 0, '')
  await user.run(['allowlist', 'clear', '--yes'])
})
