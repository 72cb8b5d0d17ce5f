/** Unpacks untrusted archives from a sandbox on the user's machine. */
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
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

const evil = (path: string): Entry => ({ path, content: 'evil' })
const link = (path: string, linkpath: string): Entry => ({ path, type: 'SymbolicLink', linkpath })
const hardLink = (path: string, linkpath: string): Entry => ({ path, type: 'Link', linkpath })

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

/** Asserts that every entry and link resolves to a path inside the target. */
function assertInsideTarget(): void {
  for (const path of pathsIn(target).filter((path) => existsSync(path)))
    expect(`${realpathSync(path)}/`.startsWith(`${target}/`), path).toBe(true)
}

/** Lists all paths under a folder. Does not follow links, because they may form a cycle. */
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
  test.each<[string, Entry[]]>([
    ['a name with ..', [evil('../outside/precious')]],
    ['a name with .. after a folder', [evil('./a/../../outside/precious')]],
    ['a file through a link', [link('way', '../outside'), evil('way/precious')]],
    ['a file over a link', [link('way', '../outside/precious'), evil('way')]],
    ['a file through an absolute link', [link('way', outside), evil('way/precious')]],
    ['a file through a hard link', [hardLink('way', '../outside/precious'), evil('way')]],
    ['a file through an absolute hard link', [hardLink('way', join(outside, 'precious')), evil('way')]],
    [
      'a hard link through a link',
      [link('way', '../outside'), hardLink('hard', 'way/precious'), evil('hard')],
    ],
    ['a link through a link', [link('way', '../outside'), link('way/new', 'precious')]],
    ['a link in place of the target', [link('.', '../outside')]],
    ['a link whose name has ..', [link('../outside/new', 'precious')]],
    ['a folder whose name has ..', [{ path: '../outside/new', type: 'Directory' }]],
  ])('unpacking writes nothing outside the target folder for %s', async (_, entries) => {
    await unpack(archiveOf([...entries, { path: 'good', content: 'good' }]))
    expect(readdirSync(outside)).toEqual(['precious'])
    expect(readFileSync(join(outside, 'precious'), 'utf8')).toBe('mine')
    expect(lstatSync(join(outside, 'precious')).nlink).toBe(1)
    expect(readFileSync(join(target, 'good'), 'utf8')).toBe('good')
    assertInsideTarget()
  })

  test('unpacking an archive treats an absolute entry name as relative to the target folder', async () => {
    await unpack(archiveOf([evil(join(outside, 'new'))]))
    expect(readFileSync(join(target, outside, 'new'), 'utf8')).toBe('evil')
    expect(readdirSync(outside)).toEqual(['precious'])
  })

  test('unpacking does not follow an existing link out of the target folder', async () => {
    symlinkSync(outside, join(target, 'mine'))
    const entries = [evil('mine/precious'), link('mine/new', 'precious')]
    expect(await unpack(archiveOf(entries))).toHaveLength(2)
    expect(readFileSync(join(outside, 'precious'), 'utf8')).toBe('mine')
    expect(readdirSync(outside)).toEqual(['precious'])
  })

  test('unpacking does not follow a chain of links out of the target folder', async () => {
    const step = fc.constantFrom('..', '.', 'a', 'b', 'c', '')
    const way = fc.array(step, { minLength: 1, maxLength: 6 }).map((steps) => steps.join('/'))
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(way, way), { maxLength: 8 }), async (links) => {
        rmSync(target, { recursive: true })
        mkdirSync(join(target, 'a', 'b', 'c'), { recursive: true })
        await unpack(archiveOf(links.map(([path, to]) => link(path, to))))
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
      link('bin/python', '/usr/bin/python3'),
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
})

const source = join(outside, 'source')

/** Packs the source folder into an archive and unpacks the archive. Returns the entries skipped by `pack`. */
async function packAndUnpack(onChunk: (chunk: Buffer) => void): Promise<string[]> {
  const skipped = new Skipped()
  const archive: Buffer[] = []
  for await (const chunk of pack(source, skipped)) {
    archive.push(chunk)
    onChunk(chunk)
  }
  await unpack(Buffer.concat(archive))
  return skipped.lines
}

test('packing skips pipes, sockets and deleted files, but packs the rest', async () => {
  mkdirSync(source)
  for (const name of ['a', 'gone', 'z']) writeFileSync(join(source, name), name)
  execFileSync('mkfifo', [join(source, 'pipe')])
  await using socket = await listenOn(join(source, 'socket'))
  expect(socket.listening).toBe(true)
  // At the first chunk, the names have been read.
  const skipped = await packAndUnpack(() => rmSync(join(source, 'gone'), { force: true }))
  expect(readdirSync(join(target, 'root')).sort()).toEqual(['a', 'z'])
  expect(skipped.sort()).toEqual([
    'gone: ENOENT: no such file or directory',
    'pipe: is a pipe',
    'socket: is a socket',
  ])
})

test('if a file shrinks during packing, the archive entry is padded and the file is reported', async () => {
  mkdirSync(source)
  writeFileSync(join(source, 'log'), Buffer.alloc(1_000_000, 'x'))
  const skipped = await packAndUnpack((chunk) => {
    const isContent = chunk.length > 1000
    if (isContent) writeFileSync(join(source, 'log'), '')
  })
  expect(statSync(join(target, 'root/log')).size).toBe(1_000_000)
  expect(skipped).toEqual([expect.stringContaining('log: shrank')])
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
