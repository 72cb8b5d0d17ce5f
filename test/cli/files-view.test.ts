import { hash } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import type { RunOptions } from './client.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld()
const user = shareSession(makeUsers(world))
const view = (args: string[], options: RunOptions = {}) => user.run(['files', 'view', ...args], options)
const sha256 = (bytes: Buffer) => hash('sha256', bytes)

const count = 200_000
const numbers = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => `${first + index}\n`).join('')
const factsOf = async (path: string) =>
  (await view([path, '--json=size,sha256'])).json() as { size: number; sha256: string }

beforeAll(async () => {
  const script = [
    `seq ${count} > numbers`,
    'head -c 1500000 /dev/urandom > random',
    '{ echo first; head -c 1500000 /dev/zero | tr "\\0" x; echo; echo last; } > long',
    '{ seq 200000; echo "token=$TOKEN"; } > leaky',
  ].join('\n')
  await user.run(['secrets', 'create', 'TOKEN', '--from-file', '-'], { input: 'p4ssw0rd!' })
  expect(await user.run(['exec', '-c', script])).toMatchObject({ code: 0 })
})

test.each(['numbers', 'random', 'long'])('`files view` prints the file %s byte for byte', async (path) => {
  const { size, sha256: sum } = await factsOf(path)
  const { bytes, stderr, code } = await view([path])
  expect({ size: bytes.length, sum: sha256(bytes) }).toEqual({ size, sum })
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
  expect(sha256((await view([path, '-q', '--reveal'])).bytes)).toBe(sum)
})

test.each([
  ['numbers', '199999:', '199999\n200000\n'],
  ['numbers', '2:190000', numbers(2, 190_000)],
  ['numbers', '5-7', numbers(5, 7)],
  ['numbers', ':1', '1\n'],
  ['numbers', '500000:', ''],
  ['long', '2', `${'x'.repeat(1_500_000)}\n`],
  ['long', '3:', 'last\n'],
])('`files view` prints the lines of the file %s that are in the range %s', async (path, lines, whole) => {
  const { stdout, stderr, code } = await view([path, '--lines', lines])
  // One boolean, because vitest would print a diff of megabytes.
  expect({ is: stdout === whole, stderr, code }).toEqual({ is: true, stderr: '', code: 0 })
})

test('`files view` redacts secrets, even at the end of a large file, unless --reveal is given', async () => {
  expect((await view(['leaky'])).stdout.endsWith('200000\ntoken=[secret TOKEN]\n')).toBe(true)
  expect((await view(['leaky', '--lines', '200001'])).stdout).toBe('token=[secret TOKEN]\n')
  expect((await view(['leaky', '--lines', '200001', '--reveal'])).stdout).toBe('token=p4ssw0rd!\n')
  expect((await view(['leaky', '--reveal'])).stdout.endsWith('token=p4ssw0rd!\n')).toBe(true)
})

test('`files view --json` truncates a long file after a complete line', async () => {
  const { json, stderr, code } = await view(['numbers', '--json'])
  const { content, truncated, total_lines } = json()
  expect({ code, truncated, total_lines }).toEqual({ code: 9, truncated: true, total_lines: count })
  const lines = content.split('\n').length - 1
  expect(content === numbers(1, lines)).toBe(true)
  expect(stderr).toContain('Use --lines to read other parts')
  expect(await view(['numbers', '--json', '-q'])).toMatchObject({ code: 9, stderr: '' })
  // Nothing is truncated if the content is omitted.
  expect(await view(['numbers', '--json=size'])).toMatchObject({ code: 0, stderr: '' })
  expect(await view(['numbers', '--json', '--lines', '5:6'])).toMatchObject({ code: 0, stderr: '' })
})

test('a `files` command exits with code 9 if the printed list is truncated', async () => {
  await user.run(['exec', '-c', 'mkdir many; cd many; seq 10001 | xargs touch; seq 1001 > ../lines'])
  const ran = [
    await user.run(['files', 'ls', 'many', '-q']),
    await user.run(['files', 'grep', '-q', '.', 'lines']),
  ]
  expect(ran.map(({ code }) => code)).toEqual([9, 9])
  expect((await user.run(['files', 'ls', 'many'])).stderr).toContain('only the first 10000 entries are shown')
})

test('`files view` exits with code 0 on EPIPE, 3 for a missing file and 5 for a folder', async () => {
  const head = await view(['numbers'], {
    onStart: (child) => child.stdout!.once('data', () => child.stdout!.destroy()),
  })
  expect(head).toMatchObject({ code: 0, stderr: '' })
  expect(await view(['nowhere'])).toMatchObject({ code: 3, stdout: '' })
  expect(await view(['.', '--lines', '1'])).toMatchObject({ code: 5, stdout: '' })
})
