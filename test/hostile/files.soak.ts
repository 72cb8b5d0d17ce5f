/** Expensive file trees and patterns, with a neighbour on the same worker. */
import { expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import { shareWorld } from '../support/shared.ts'
import { type Tenant, withNeighbour } from './neighbour.ts'

const world = shareWorld()

/** Shell code that creates a deep tree of folders with long names. */
const deepTree = (name: string, folders: number, files: number) => `mkdir ${name} && cd ${name} || exit
seq ${files} | xargs touch; cd ..; d=$(printf '%0250d' 0); i=0
while [ $i -lt ${folders} ]; do mkdir next && mv ${name} "next/$d" && mv next ${name} || exit; i=$((i + 1)); done`

const prepare = async ({ sh }: Tenant, line: string) =>
  expect(await sh(line)).toMatchObject({ status: 'exited', exit_code: 0 })

const glob = async ({ account, params }: Tenant, pattern: string) => {
  const { body } = await account.call('globFiles', { params, query: { pattern } })
  return body
}

const jsonBytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value))

test('a search through thousands of deep paths is limited and does not slow down other sandboxes', async () => {
  const { tooMany, tooDeep, deep } = await withNeighbour(world, async (hostile) => {
    // Paths in `a` exceed the Linux limit. Paths in `b` are as long as the limit allows.
    await prepare(hostile, `${deepTree('a', 220, 2_000)}; ${deepTree('b', 15, 3_000)}`)
    return {
      tooMany: await glob(hostile, 'a/**/[0-9]*').catch(({ code }) => code),
      tooDeep: await glob(hostile, 'a/**/2'),
      deep: await glob(hostile, 'b/**'),
    }
  })
  // `sort` needs more temporary space for these names than /tmp has.
  expect(tooMany).toBe('invalid_request')
  expect(tooDeep).toMatchObject({ paths: [], truncated: true })
  expect(deep).toMatchObject({ truncated: true })
  expect(deep.paths[0]).toMatch(/^b\/0+/)
  expect(jsonBytes(deep)).toBeLessThan(1.1 * limits.listed.bytes)
})

test('eight concurrent globs with many alternatives do not block the API, even when file names are long', async () => {
  // Each alternative matches most of a name before it fails.
  const alternatives = Array.from({ length: 60 }, (_, index) => `*a*a*a*a*a*a*${index}b`)
  const result = await withNeighbour(world, async (hostile) => {
    await prepare(hostile, `n=$(printf '%0240d' 0 | tr 0 a); seq -f "$n%g" 5000 | xargs touch`)
    return await Promise.all(Array.from({ length: 8 }, () => glob(hostile, `{${alternatives},*7}`)))
  })
  for (const { paths, truncated } of result) {
    expect(truncated || paths.length === 500).toBe(true)
    for (const path of paths) expect(path).toMatch(/^a+\d*7$/)
  }
})

test('concurrent edits that replace every byte of large files do not block the API', async () => {
  const result = await withNeighbour(
    world,
    async (hostile) => {
      const { account, params } = hostile
      await prepare(
        hostile,
        `for f in 1 2 3 4; do head -c ${limits.editBytes / 2} /dev/zero | tr '\\0' a > $f; done`,
      )
      const edits = ['1', '2', '3', '4'].map((path) =>
        account.call('editFile', { params, body: { path, old: 'a', new: 'bc', replace_all: true } }),
      )
      return await Promise.allSettled(edits)
    },
    { growthMiB: 512 },
  )
  const edited = result.filter(({ status }) => status === 'fulfilled')
  expect(edited.length).toBeGreaterThan(1)
  for (const one of result) {
    if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'rate_limited' })
    else expect(one.value.body).toMatchObject({ size: limits.editBytes, replacements: limits.editBytes / 2 })
  }
})

test('a search response stays small despite a very long line and names that must be escaped in JSON', async () => {
  const result = await withNeighbour(world, async (hostile) => {
    const { account, params } = hostile
    await prepare(
      hostile,
      `head -c 100000000 /dev/zero | tr '\\0' x > line
      c=$(printf '\\001'); n=$(printf '%0250d' 0 | tr 0 "$c"); i=0
      while [ $i -lt 12 ]; do mkdir "$n"; cd "$n"; i=$((i + 1)); done
      yes "$n$n$n$n$n$n$n$n$n$n" | head -n 3000 > f`,
    )
    const all = await Promise.all([
      account.call('grepFiles', { params, query: { pattern: 'x', path: 'line' } }),
      account.call('grepFiles', { params, query: { pattern: '.', include: 'f' } }),
    ])
    return all.map(({ body }) => body)
  })
  const [line, names] = result
  expect(line?.matches).toMatchObject([{ line: 1, text: 'x'.repeat(limits.grepLineBytes) }])
  expect(names?.truncated).toBe(true)
  expect(jsonBytes(names)).toBeLessThan(1.1 * limits.listed.bytes)
})
