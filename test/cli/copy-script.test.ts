import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { pack } from '../../cli/files/pack.ts'
import { Skipped } from '../../cli/files/skipped.ts'
import { unpackCommand } from '../../cli/files/tar-commands.ts'
import { eventually } from '../support/eventually.ts'

const root = mkdtempSync(join(tmpdir(), 'sandlot-script-'))
const target = join(root, 'target')
let archive: Buffer
beforeAll(async () => {
  mkdirSync(join(root, 'source', 'sub'), { recursive: true })
  for (const name of ['a', 'b', 'sub/c']) writeFileSync(join(root, 'source', name), 'new')
  const chunks: Buffer[] = []
  for await (const chunk of pack(join(root, 'source'), new Skipped())) chunks.push(chunk)
  archive = Buffer.concat(chunks)
})
beforeEach(resetTarget)
afterAll(() => rmSync(root, { recursive: true, force: true }))

function resetTarget(): void {
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target)
  writeFileSync(join(target, 'a'), 'old')
}

const describeTarget = () => `${readdirSync(target)}: ${readFileSync(join(target, 'a'))}`
const [shell = '', ...args] = unpackCommand(target, '.sandlot-test', false)

test('the `cp` script in the sandbox changes nothing if its archive is truncated', () => {
  const marker = archive.indexOf('modes')
  for (let at = 0; at < archive.length; at += 256) {
    resetTarget()
    const { status } = spawnSync(shell, args, { input: archive.subarray(0, at) })
    const isComplete = at >= marker + 512
    expect({ at, status, found: describeTarget() }).toEqual({
      at,
      status: isComplete ? 0 : 1,
      found: isComplete ? 'a,b,sub: new' : 'a: old',
    })
  }
})

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 143],
] as const)('the `cp` script in the sandbox removes its temporary folder on %s', async (signal, code) => {
  const child = spawn(shell, args, { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  child.stdin.write(archive.subarray(0, archive.length / 2))
  await eventually(() => readdirSync(target).length === 2, 5_000)
  // Signals the whole process group, as a sandbox does.
  process.kill(-child.pid!, signal)
  expect(await once(child, 'exit')).toEqual([code, null])
  child.stdin.destroy()
  expect(describeTarget()).toBe('a: old')
})
