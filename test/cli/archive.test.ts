/** Archives from a sandbox are unpacked on a user's machine, and a sandbox may send anything. */
import { execFileSync } from 'node:child_process'
import {
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
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { Header } from 'tar'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { pack, unpackInto } from '../../cli/files/archive.ts'
import { makeLinks } from '../../cli/files/links.ts'

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

/** Everything in the target, links included, is in the target. */
function mustLeadInside(): void {
  for (const path of pathsIn(target).filter((path) => existsSync(path)))
    expect(`${realpathSync(path)}/`.startsWith(`${target}/`), path).toBe(true)
}

/** Goes into no link, which may lead back. */
const pathsIn = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? [path, ...pathsIn(path)] : [path]
  })

async function unpack(archive: Buffer): Promise<string[]> {
  const unpacking = unpackInto(target)
  // In pieces, as it comes over the network.
  for (let at = 0; at < archive.length; at += 700) await unpacking.write(archive.subarray(at, at + 700))
  return await unpacking.end()
}

describe('nothing is written outside the target', () => {
  const evil = { content: 'evil' }
  test.each<[string, Entry[]]>([
    ['a name that climbs', [{ path: '../outside/precious', ...evil }]],
    ['a name that climbs later', [{ path: './a/../../outside/precious', ...evil }]],
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
    ['a link that climbs', [{ path: '../outside/new', type: 'SymbolicLink', linkpath: 'precious' }]],
    ['a folder that climbs', [{ path: '../outside/new', type: 'Directory' }]],
  ])('by %s', async (_, entries) => {
    await unpack(archiveOf([...entries, { path: 'good', content: 'good' }]))
    expect(readdirSync(outside)).toEqual(['precious'])
    expect(readFileSync(join(outside, 'precious'), 'utf8')).toBe('mine')
    expect(lstatSync(join(outside, 'precious')).nlink).toBe(1)
    expect(readFileSync(join(target, 'good'), 'utf8')).toBe('good')
    // Nor does anything lead there later.
    mustLeadInside()
  })

  test('by an absolute name, which is taken as one of the target', async () => {
    await unpack(archiveOf([{ path: join(outside, 'new'), ...evil }]))
    expect(readFileSync(join(target, outside, 'new'), 'utf8')).toBe('evil')
    expect(readdirSync(outside)).toEqual(['precious'])
  })

  test('through a link that was there before', async () => {
    symlinkSync(outside, join(target, 'mine'))
    const entries: Entry[] = [
      { path: 'mine/precious', ...evil },
      { path: 'mine/new', type: 'SymbolicLink', linkpath: 'precious' },
    ]
    expect(await unpack(archiveOf(entries))).toHaveLength(2)
    expect(readFileSync(join(outside, 'precious'), 'utf8')).toBe('mine')
    expect(readdirSync(outside)).toEqual(['precious'])
  })

  test('by any chain of links', () => {
    const step = fc.constantFrom('..', '.', 'a', 'b', 'c', '')
    const way = fc.array(step, { minLength: 1, maxLength: 6 }).map((steps) => steps.join('/'))
    const link = fc.record({ path: way, target: way })
    fc.assert(
      fc.property(fc.array(link, { maxLength: 8 }), (links) => {
        rmSync(target, { recursive: true })
        mkdirSync(join(target, 'a', 'b', 'c'), { recursive: true })
        makeLinks(target, links)
        mustLeadInside()
        expect(readdirSync(root).sort()).toEqual(['outside', 'target'])
      }),
      { numRuns: 200 },
    )
  })
})

test('what cannot be unpacked is told, and the rest is unpacked', async () => {
  const leftOut = await unpack(
    archiveOf([
      { path: 'bin/python', type: 'SymbolicLink', linkpath: '/usr/bin/python3' },
      { path: 'pipe', type: 'FIFO' },
      { path: '../up', content: 'x' },
      { path: 'suid', mode: 0o4755, content: 'x' },
    ]),
  )
  expect(leftOut).toEqual([
    'pipe: unsupported entry type: FIFO',
    "../up: path contains '..'",
    'bin/python: a link to /usr/bin/python3 leads out of the folder',
  ])
  expect(statSync(join(target, 'suid')).mode & 0o7000).toBe(0)
})

test('an archive that is cut short, or is none, fails', async () => {
  const archive = archiveOf([{ path: 'a', content: 'x'.repeat(5000) }])
  await expect(unpack(archive.subarray(0, 3000))).rejects.toThrow('Truncated')
  await expect(unpack(Buffer.alloc(4096, 'nonsense'))).rejects.toThrow('Unrecognized')
})

test('what is packed here is unpacked the same: modes, links and times', async () => {
  const source = join(outside, 'source')
  mkdirSync(join(source, 'sub', 'empty'), { recursive: true })
  writeFileSync(join(source, '@name'), 'at')
  writeFileSync(join(source, 'sub', 'run'), '#!', { mode: 0o755 })
  symlinkSync('run', join(source, 'sub', 'last'))
  symlinkSync('sub/last', join(source, 'first'))
  execFileSync('touch', ['-d', '2020-02-02', join(source, '@name'), join(source, 'sub', 'empty')])
  const leftOut: string[] = []
  const unpacking = unpackInto(target)
  for await (const chunk of pack(source, { prefix: 'x/y', root: false, leftOut }))
    await unpacking.write(chunk)
  expect([...leftOut, ...(await unpacking.end())]).toEqual([])
  const at = (path: string) => join(target, 'x/y', path)
  expect(readdirSync(at('')).sort()).toEqual(['@name', 'first', 'sub'])
  for (const name of ['@name', 'sub/empty'])
    expect(statSync(at(name)).mtime.getUTCFullYear(), name).toBe(2020)
  expect(statSync(at('sub/run')).mode & 0o777).toBe(0o755)
  expect(readlinkSync(at('first'))).toBe('sub/last')
  expect(realpathSync(at('first'))).toBe(at('sub/run'))
  expect(readdirSync(at('sub/empty'))).toEqual([])
})
