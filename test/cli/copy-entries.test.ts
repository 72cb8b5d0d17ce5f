/** `sandlot cp` and `files get|put` with every type of entry, in both directions. */
import { execFileSync } from 'node:child_process'
import { hash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeOnEveryImage } from '../support/drivers.ts'
import { startWorld, type World } from '../support/index.ts'
import type { Ran } from './client.ts'
import { makeUsers, type SessionUser } from './users.ts'

describeOnEveryImage('copies', ({ driver, env }) => {
  let world: World
  let user: SessionUser
  beforeAll(async () => {
    world = await startWorld({ driver, env })
    user = await makeUsers(world).newSession()
  })
  afterAll(async () => {
    await user?.[Symbol.asyncDispose]()
    await world?.[Symbol.asyncDispose]()
  })

  const local = (name: string) => join(world.folder, name)
  const cp = (...args: string[]) => user.run(['cp', ...args])
  const sh = async (script: string): Promise<string> => {
    const ran = await user.run(['exec', '-c', script])
    expect(ran).toMatchObject({ code: 0 })
    return ran.stdout
  }
  const notCopied = ({ stderr }: Ran) =>
    stderr.split('\n').flatMap((line) => /^sandlot: not copied: (.*)$/.exec(line)?.[1] ?? [])

  test('copying a folder preserves modes, timestamps, links and non-UTF-8 names', async () => {
    const source = makeTree(local('every'))
    const there = await cp(source, ':')
    expect(there).toMatchObject({ code: 9, stdout: ':/workspace/every\n' })
    expect(notCopied(there).sort()).toEqual(['pipe: is a pipe', 'sub/pipe: is a pipe'])
    // On Kubernetes, new folders inherit the volume's set-group-ID bit.
    const modes = await sh('cd every && stat -c "%a %n" f??? g775 private ro | sed "s/^2//"')
    expect(modes).toBe('400 f400\n444 f444\n600 f600\n664 f664\n775 f775\n775 g775\n700 private\n555 ro\n')
    expect(await cp(':every', local('back'))).toMatchObject({ code: 0, stderr: '' })
    const [before, after] = [describeTree(source), describeTree(local('back'))]
    expect(Object.keys(after).sort()).toEqual(Object.keys(before).sort())
    for (const [name, entry] of Object.entries(before)) expect(after[name], name).toEqual(entry)
    // Overwrites the first copy, whose folders are read-only.
    expect(await cp(`${source}/.`, ':every')).toMatchObject({ code: 9 })
    expect(await sh('stat -c "%a %n" every/ro every/f400')).toBe('555 every/ro\n400 every/f400\n')
    expect(await cp(':every/.', local('back'))).toMatchObject({ code: 0, stderr: '' })
    expect(describeTree(local('back'))).toEqual(after)
  })

  test('copying a single file in either direction preserves its mode', async () => {
    for (const mode of [0o755, 0o600, 0o444]) {
      const name = `mode-${mode.toString(8)}`
      writeFileSync(local(name), '#!/bin/sh\n')
      chmodSync(local(name), mode)
      expect(await cp(local(name), ':')).toMatchObject({ code: 0 })
      expect(await user.run(['files', 'put', local(name), `put-${name}`])).toMatchObject({ code: 0 })
      const shown = mode.toString(8)
      expect(await sh(`stat -c %a ${name} put-${name}`)).toBe(`${shown}\n${shown}\n`)
      for (const args of [
        ['cp', `:${name}`],
        ['files', 'get', name],
      ]) {
        expect(await user.run([...args, local('got')])).toMatchObject({ code: 0 })
        expect(statSync(local('got')).mode & 0o7777).toBe(mode)
      }
    }
    await sh('./mode-755')
  })

  test('`cp` reports entries that are unreadable in the sandbox, and copies the rest', async () => {
    await sh(
      'mkdir -p odd/locked && echo a > odd/a && echo b > odd/b && chmod 000 odd/locked odd/b && mkfifo odd/pipe',
    )
    const ran = await cp(':odd', local('odd'))
    expect(ran).toMatchObject({ code: 9 })
    const named = notCopied(ran).join('\n')
    for (const name of ['locked', 'b', 'pipe']) expect(named).toMatch(new RegExp(`\\./${name}\\b`))
    expect(readFileSync(local('odd/a'), 'utf8')).toBe('a\n')
    // Copying a folder with only such entries must also fail.
    await sh('mkdir lone && mkfifo lone/pipe')
    expect(await cp(':lone', local('lone'))).toMatchObject({ code: 9 })
    expect(await cp(':lone/pipe', local('x'))).toMatchObject({ code: 2 })
  })

  test('`cp` never replaces a file with a folder, or a folder with a file', async () => {
    await sh('echo file > kind; mkdir other; mkdir -p deep/kind; echo deep > deep/file; mkdir deep/folder')
    mkdirSync(local('kind'))
    writeFileSync(local('other'), 'local')
    expect(await cp(local('kind'), ':')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is a file'),
    })
    expect(await cp(':other', world.folder)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is a file'),
    })
    expect(await cp(':kind', world.folder)).toMatchObject({ code: 1 })
    expect(await cp(local('other'), ':')).toMatchObject({ code: 5 })
    expect(readFileSync(local('other'), 'utf8')).toBe('local')

    mkdirSync(local('deep/file'), { recursive: true })
    writeFileSync(local('deep/folder'), 'local')
    writeFileSync(local('deep/last'), 'last')
    const up = await cp(`${local('deep')}/.`, ':deep')
    expect(up).toMatchObject({ code: 9 })
    expect(notCopied(up).sort()).toEqual([
      '/workspace/deep/file: is not a folder and is not replaced',
      '/workspace/deep/folder: is not a file and is not replaced',
    ])
    expect(await sh('cat deep/file deep/last; ls -A deep')).toBe('deep\nlastfile\nfolder\nkind\nlast\n')
    const down = await cp(':deep/.', local('deep'))
    expect(down).toMatchObject({ code: 9 })
    expect(notCopied(down)).toHaveLength(2)
    expect(readFileSync(local('deep/folder'), 'utf8')).toBe('local')
    expect(statSync(local('deep/file')).isDirectory()).toBe(true)
  })

  test('`cp` writes to pipes and devices in a sandbox', async () => {
    writeFileSync(local('bytes'), 'bytes')
    await sh('mkfifo fifo; ln -s /dev/null null; (cat fifo > read) >/dev/null 2>&1 &')
    for (const path of ['fifo', 'null', '/dev/null']) {
      expect(await cp(local('bytes'), `:${path}`)).toMatchObject({ code: 0 })
      expect(await user.run(['files', 'put', '-', '/dev/null'], { input: 'x' })).toMatchObject({ code: 0 })
    }
    expect(await sh('test -p fifo && test -c /dev/null && test -L null && cat read')).toBe('bytes')
    await sh('mkdir devices && mkfifo devices/bytes')
    mkdirSync(local('devices'))
    writeFileSync(local('devices/bytes'), 'bytes')
    expect(await cp(`${local('devices')}/.`, ':devices')).toMatchObject({ code: 9 })
    await sh('test -p devices/bytes')
  })
})

/** Creates every type of entry that this machine allows. */
function makeTree(folder: string): string {
  mkdirSync(join(folder, 'sub', 'empty'), { recursive: true })
  const files = {
    f400: 0o400,
    f444: 0o444,
    f600: 0o600,
    f664: 0o664,
    f775: 0o775,
    [`${'l'.repeat(200)}`]: 0o644,
  }
  for (const [name, mode] of Object.entries(files)) {
    writeFileSync(join(folder, name), name)
    chmodSync(join(folder, name), mode)
  }
  for (const name of ['-dash', '*star', '..two', '.hidden', 'a b', 'new\nline', 'naïve 日本', "it's"])
    writeFileSync(join(folder, name), name)
  for (const byte of [0xc3, 0xfe, 0xff]) {
    const name = Buffer.from([0x78, byte])
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), name]), name)
  }
  writeFileSync(join(folder, 'sub', 'large'), randomBytes(1_500_000))
  for (const [name, mode] of Object.entries({ g775: 0o775, private: 0o700, ro: 0o555 })) {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'in'), name)
    chmodSync(join(folder, name), mode)
  }
  symlinkSync('sub/large', join(folder, 'link'))
  symlinkSync('nowhere', join(folder, 'dangling'))
  for (const name of ['pipe', 'sub/pipe']) execFileSync('mkfifo', [join(folder, name)])
  execFileSync('touch', ['-d', '2020-02-02', join(folder, 'f664'), join(folder, 'sub', 'large')])
  return folder
}

/** Returns type, mode, time and content of all entries except pipes. Names are latin1. */
function describeTree(folder: string, path = ''): Record<string, unknown> {
  const at = (name: string) => Buffer.concat([Buffer.from(folder), Buffer.from(name, 'latin1')])
  const entries = readdirSync(at(path), { encoding: 'latin1' }).map((name) => `${path}/${name}`)
  const described = entries.flatMap((name): [string, unknown][] => {
    const stats = lstatSync(at(name))
    if (stats.isFIFO()) return []
    if (stats.isSymbolicLink()) return [[name, readlinkSync(at(name))]]
    const facts = { mode: (stats.mode & 0o7777).toString(8) }
    if (stats.isDirectory()) return [[name, facts], ...Object.entries(describeTree(folder, name))]
    const sha256 = hash('sha256', readFileSync(at(name)))
    return [[name, { ...facts, sha256, mtime: Math.floor(stats.mtimeMs / 1000) }]]
  })
  return Object.fromEntries(described)
}
