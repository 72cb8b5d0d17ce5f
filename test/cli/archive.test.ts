/** Extracting untrusted archives from a sandbox on the user's machine. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { Header } from 'tar'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { pack } from '../../cli/files/pack.ts'
import { Skipped } from '../../cli/files/skipped.ts'
import { encodeHeader, endOfArchive, paddingOf } from '../../cli/files/tar-header.ts'
import { unpackInto } from '../../cli/files/unpack.ts'
import { eventually } from '../support/eventually.ts'

const root = mkdtempSync(join(tmpdir(), 'sandlot-archive-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const outside = join(root, 'outside')
const target = join(root, 'target')

beforeEach(() => {
  for (const folder of [outside, target]) {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder)
  }
  writeFileSync(join(outside, 'precious'), 'mine')
})

interface Entry {
  path: string
  type?: 'File' | 'Directory' | 'SymbolicLink' | 'Link' | 'FIFO' | 'CharacterDevice'
  linkpath?: string
  mode?: number
  content?: string
}

function archiveOf(entries: Entry[]): Buffer {
  const blocks = entries.map(({ content = '', type = 'File', ...entry }) => {
    const header = new Header({ mode: 0o644, mtime: new Date(0), type, size: content.length, ...entry })
    header.encode()
    return Buffer.concat([
      header.block!,
      Buffer.from(content),
      Buffer.alloc((512 - (content.length % 512)) % 512),
    ])
  })
  return Buffer.concat([...blocks, Buffer.alloc(1024)])
}

/** Every entry and link must resolve to a path inside the target. */
function assertInsideTarget(): void {
  for (const path of pathsIn(target).filter((path) => existsSync(path)))
    expect(`${realpathSync(path)}/`.startsWith(`${target}/`), path).toBe(true)
}

/** Links may form a cycle, so they are not followed. */
const pathsIn = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? [path, ...pathsIn(path)] : [path]
  })

async function unpackAll(archive: Buffer): Promise<Skipped> {
  const skipped = new Skipped()
  const unpacking = unpackInto(target, { setsRoot: true, skipped })
  try {
    // Splits the archive into chunks, like a network.
    for (let at = 0; at < archive.length; at += 700) await unpacking.write(archive.subarray(at, at + 700))
    await unpacking.end()
  } finally {
    unpacking.abort()
  }
  return skipped
}

const unpack = async (archive: Buffer): Promise<string[]> => (await unpackAll(archive)).lines

describe('unpacking into a target folder', () => {
  const evil = { content: 'evil' }
  test.each<[string, Entry[]]>([
    ['a name with ..', [{ path: '../outside/precious', ...evil }]],
    ['a name with .. after a folder', [{ path: './a/../../outside/precious', ...evil }]],
    [
      'a file through a link',
      [
        { path: 'way', type: 'SymbolicLink', linkpath: '../outside' },
        { path: 'way/precious', ...evil },
      ],
    ],
    [
      'a file over a link',
      [
        { path: 'way', type: 'SymbolicLink', linkpath: '../outside/precious' },
        { path: 'way', ...evil },
      ],
    ],
    [
      'a file through an absolute link',
      [
        { path: 'way', type: 'SymbolicLink', linkpath: outside },
        { path: 'way/precious', ...evil },
      ],
    ],
    [
      'a file through a hard link',
      [
        { path: 'way', type: 'Link', linkpath: '../outside/precious' },
        { path: 'way', ...evil },
      ],
    ],
    [
      'a file through an absolute hard link',
      [
        { path: 'way', type: 'Link', linkpath: join(outside, 'precious') },
        { path: 'way', ...evil },
      ],
    ],
    [
      'a hard link through a link',
      [
        { path: 'way', type: 'SymbolicLink', linkpath: '../outside' },
        { path: 'hard', type: 'Link', linkpath: 'way/precious' },
        { path: 'hard', ...evil },
      ],
    ],
    [
      'a link through a link',
      [
        { path: 'way', type: 'SymbolicLink', linkpath: '../outside' },
        { path: 'way/new', type: 'SymbolicLink', linkpath: 'precious' },
      ],
    ],
    ['a link in place of the target', [{ path: '.', type: 'SymbolicLink', linkpath: '../outside' }]],
    ['a link whose name has ..', [{ path: '../outside/new', type: 'SymbolicLink', linkpath: 'precious' }]],
    ['a folder whose name has ..', [{ path: '../outside/new', type: 'Directory' }]],
  ])('unpacking writes nothing outside the target folder for %s', async (_, entries) => {
    await unpack(archiveOf([...entries, { path: 'good', content: 'good' }]))
    expect(readdirSync(outside)).toEqual(['precious'])
    expect(readFileSync(join(outside, 'precious'), 'utf8')).toBe('mine')
    expect(lstatSync(join(outside, 'precious')).nlink).toBe(1)
    expect(readFileSync(join(target, 'good'), 'utf8')).toBe('good')
    assertInsideTarget()
  })

  test('unpacking treats an absolute name as relative to the target folder', async () => {
    await unpack(archiveOf([{ path: join(outside, 'new'), ...evil }]))
    expect(readFileSync(join(target, outside, 'new'), 'utf8')).toBe('evil')
    expect(readdirSync(outside)).toEqual(['precious'])
  })

  test('unpacking does not follow an existing link out of the target folder', async () => {
    symlinkSync(outside, join(target, 'mine'))
    const entries: Entry[] = [
      { path: 'mine/precious', ...evil },
      { path: 'mine/new', type: 'SymbolicLink', linkpath: 'precious' },
    ]
    expect(await unpack(archiveOf(entries))).toHaveLength(2)
    expect(readFileSync(join(outside, 'precious'), 'utf8')).toBe('mine')
    expect(readdirSync(outside)).toEqual(['precious'])
  })

  test('unpacking does not follow a chain of links out of the target folder', async () => {
    const step = fc.constantFrom('..', '.', 'a', 'b', 'c', '')
    const way = fc.array(step, { minLength: 1, maxLength: 6 }).map((steps) => steps.join('/'))
    const link = fc.record({ path: way, target: way })
    await fc.assert(
      fc.asyncProperty(fc.array(link, { maxLength: 8 }), async (links) => {
        rmSync(target, { recursive: true })
        mkdirSync(join(target, 'a', 'b', 'c'), { recursive: true })
        await unpack(
          archiveOf(links.map((each) => ({ type: 'SymbolicLink', path: each.path, linkpath: each.target }))),
        )
        assertInsideTarget()
        expect(readdirSync(root).sort()).toEqual(['outside', 'target'])
      }),
      { numRuns: 200 },
    )
  })
})

test('unpacking reports skipped entries by name and unpacks the rest', async () => {
  const skipped = await unpack(
    archiveOf([
      { path: 'bin/python', type: 'SymbolicLink', linkpath: '/usr/bin/python3' },
      { path: 'pipe', type: 'FIFO' },
      { path: 'null', type: 'CharacterDevice' },
      { path: '../up', content: 'x' },
      { path: 'suid', mode: 0o4755, content: 'x' },
    ]),
  )
  expect(skipped).toEqual([
    'bin/python: a link to /usr/bin/python3 points outside the folder',
    'pipe: is a pipe',
    'null: is not a file, a folder or a link',
    '../up: its name contains ..',
  ])
  expect(statSync(join(target, 'suid')).mode & 0o7777).toBe(0o755)
})

test('unpacking never replaces a file with a folder, or a folder with a file', async () => {
  writeFileSync(join(target, 'file'), 'old')
  mkdirSync(join(target, 'folder'))
  execFileSync('mkfifo', [join(target, 'pipe')])
  const skipped = await unpack(
    archiveOf([
      { path: 'file/', type: 'Directory' },
      { path: 'file/in', content: 'new' },
      { path: 'folder', content: 'new' },
      { path: 'pipe', content: 'new' },
      { path: 'last', content: 'new' },
    ]),
  )
  expect(skipped.map((line) => line.split(':')[0])).toEqual(['file/', 'file/in', 'folder', 'pipe'])
  expect(readFileSync(join(target, 'file'), 'utf8')).toBe('old')
  expect(statSync(join(target, 'folder')).isDirectory()).toBe(true)
  expect(statSync(join(target, 'pipe')).isFIFO()).toBe(true)
  expect(readdirSync(target).sort()).toEqual(['file', 'folder', 'last', 'pipe'])
})

test('unpacking replaces a file atomically', async () => {
  writeFileSync(join(target, 'secret'), 'old', { mode: 0o600 })
  const archive = archiveOf([{ path: 'secret', mode: 0o600, content: 'x'.repeat(5000) }])
  const unpacking = unpackInto(target, { setsRoot: true, skipped: new Skipped() })
  await unpacking.write(archive.subarray(0, 3000))
  const [temporary] = await eventually(() => {
    const names = readdirSync(target).filter((name) => name !== 'secret')
    expect(names).toHaveLength(1)
    return names
  }, 5_000)
  expect(statSync(join(target, temporary!)).mode & 0o777).toBe(0o600)
  unpacking.abort()
  expect(readdirSync(target)).toEqual(['secret'])
  expect(readFileSync(join(target, 'secret'), 'utf8')).toBe('old')
})

test('unpacking fails for a truncated or invalid archive', async () => {
  const archive = archiveOf([{ path: 'a', content: 'x'.repeat(5000) }])
  await expect(unpack(archive.subarray(0, 3000))).rejects.toThrow('Unexpected end of data')
  await expect(unpack(Buffer.alloc(4096, 'nonsense'))).rejects.toThrow('Invalid tar header')
  expect(readdirSync(target)).toEqual([])
})

describe('hostile archives', () => {
  test('unpacking rejects a compressed archive', async () => {
    const archive = archiveOf([{ path: 'large', content: '0'.repeat(1_000_000) }])
    await expect(unpack(gzipSync(archive))).rejects.toThrow('Invalid tar header')
    expect(readdirSync(target)).toEqual([])
  })

  test('unpacking skips and counts entries with long names', async () => {
    const name = Buffer.alloc(1_000_000, 'n')
    const entry = encodeHeader({ name, type: 'file', mode: 0o644, mtime: 0 })
    const skipped = await unpackAll(Buffer.concat([...Array<Buffer>(30).fill(entry), endOfArchive]))
    expect(skipped.count).toBe(30)
    expect(skipped.lines).toHaveLength(20)
    expect(skipped.lines[0]!.length).toBeLessThan(300)
  })

  test('unpacking creates 500 links one at a time, without keeping them all in memory', async () => {
    const links = Array.from({ length: 500 }, (_, index) => ({ path: `link${index}`, linkpath: 'to' }))
    await unpack(archiveOf(links.map((link) => ({ type: 'SymbolicLink', ...link }))))
    expect(readdirSync(target)).toHaveLength(500)
  })
})

test('packing and unpacking preserve modes, links, timestamps and non-UTF-8 names', async () => {
  const source = join(outside, 'source')
  const at = (path: string | Buffer) => Buffer.concat([Buffer.from(`${source}/`), Buffer.from(path)])
  mkdirSync(at('sub/empty'), { recursive: true })
  mkdirSync(at('private'), { mode: 0o700 })
  const modes = {
    '@name': 0o400,
    open: 0o666,
    'sub/run': 0o755,
    'private/key': 0o600,
    [`${'n'.repeat(120)}`]: 0o664,
  }
  for (const [name, mode] of Object.entries(modes)) {
    writeFileSync(at(name), name)
    chmodSync(at(name), mode)
  }
  const odd = [0xc3, 0xfe, 0xff].map((byte) => Buffer.from([0x78, byte]))
  for (const name of odd) writeFileSync(at(name), name)
  symlinkSync('run', at('sub/last'))
  symlinkSync('sub/last', at('first'))
  execFileSync('touch', ['-d', '2020-02-02', join(source, '@name'), join(source, 'sub', 'empty')])
  chmodSync(at('sub'), 0o555)

  const archive: Buffer[] = []
  const skipped = new Skipped()
  for await (const chunk of pack(source, skipped)) archive.push(chunk)
  expect([...skipped.lines, ...(await unpack(Buffer.concat(archive)))]).toEqual([])
  const got = (path: string | Buffer) => Buffer.concat([Buffer.from(`${target}/root/`), Buffer.from(path)])
  const names = (folder: Buffer) => readdirSync(folder, { encoding: 'latin1' }).sort()
  expect(names(got(''))).toEqual(names(at('')))
  for (const name of odd) expect(readFileSync(got(name))).toEqual(name)
  for (const [name, mode] of Object.entries(modes)) {
    expect(readFileSync(got(name), 'utf8')).toBe(name)
    expect(statSync(got(name)).mode & 0o777, name).toBe(mode)
  }
  expect(statSync(got('private')).mode & 0o777).toBe(0o700)
  for (const name of ['@name', 'sub/empty'])
    expect(statSync(got(name)).mtime.getUTCFullYear(), name).toBe(2020)
  expect(readlinkSync(got('first'))).toEqual('sub/last')
  expect(readdirSync(got('sub/empty'))).toEqual([])
  // The script in the sandbox applies this mode.
  const modesFile = readFileSync(join(target, 'modes'), 'utf8')
  expect(modesFile).toBe('555\0./sub\0')
})

test('packing skips pipes, sockets and deleted files, and packs the rest', async () => {
  const source = join(outside, 'source')
  mkdirSync(source)
  for (const name of ['a', 'gone', 'z']) writeFileSync(join(source, name), name)
  execFileSync('mkfifo', [join(source, 'pipe')])
  await using socket = await listenOn(join(source, 'socket'))
  expect(socket.listening).toBe(true)
  const skipped = new Skipped()
  const archive: Buffer[] = []
  for await (const chunk of pack(source, skipped)) {
    archive.push(chunk)
    // The names were read and the first header was sent.
    rmSync(join(source, 'gone'), { force: true })
  }
  await unpack(Buffer.concat(archive))
  expect(readdirSync(join(target, 'root')).sort()).toEqual(['a', 'z'])
  expect(skipped.lines.sort()).toEqual([
    'gone: ENOENT: no such file or directory',
    'pipe: is a pipe',
    'socket: is a socket',
  ])
})

test('if a file shrinks during packing, the archive entry is padded and the file is reported', async () => {
  const source = join(outside, 'source')
  mkdirSync(source)
  writeFileSync(join(source, 'log'), Buffer.alloc(1_000_000, 'x'))
  const skipped = new Skipped()
  const archive: Buffer[] = []
  for await (const chunk of pack(source, skipped)) {
    archive.push(chunk)
    // The header and part of the content were sent.
    if (chunk.length > 1000) writeFileSync(join(source, 'log'), '')
  }
  await unpack(Buffer.concat(archive))
  expect(statSync(join(target, 'root/log')).size).toBe(1_000_000)
  expect(skipped.lines).toEqual([expect.stringContaining('log: shrank')])
})

test('the archive header encodes the size of a file larger than 8 GiB', async () => {
  const size = 10 * 2 ** 30
  const header = encodeHeader({ name: Buffer.from('large'), type: 'file', mode: 0o644, mtime: 0, size })
  expect(new Header(header).size).toBe(size)
  expect(paddingOf(size)).toHaveLength(0)
})

async function listenOn(path: string) {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return server
}
