import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startWorld } from '../support/index.ts'

const mount = (folder: string) => spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'none', folder]).status
const canMount = () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-mount-'))
  const isMounted = mount(folder) === 0
  if (isMounted) execFileSync('umount', [folder])
  rmSync(folder, { recursive: true })
  return isMounted
}

test.runIf(canMount())(
  'when the disk is full, a create fails immediately and the worker reports the reason',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandlot-small-'))
    using undo = new DisposableStack()
    undo.defer(() => rmSync(folder, { recursive: true }))
    expect(mount(folder)).toBe(0)
    undo.defer(() => void execFileSync('umount', ['--lazy', folder]))

    await using world = await startWorld({ env: { SANDBOX_LOCAL_DIR: folder } })
    const big = join(folder, 'big')
    expect(() => writeFileSync(big, Buffer.alloc(32 * 1024 * 1024))).toThrow('ENOSPC')
    const worker = world.workers[0]!
    const words = `no space is left on the disk of ${folder}`
    const readiness = async () => (await fetch(`${worker.internalUrl}/readyz`)).text()
    await world.eventually(async () => (await readiness()).includes(words), 10_000)
    const hasLogged = () => worker.lines.some((line) => JSON.stringify(line).includes(words))
    await world.eventually(hasLogged, 10_000)
    const alice = await world.account()
    await expect(alice.call('createSandbox')).rejects.toMatchObject({ status: 503, code: 'unavailable' })
    expect(await world.db.query('select from sandbox')).toEqual([])
    await expect(world.startWorker()).rejects.toThrow(words)

    rmSync(big)
    const { body } = await world.eventually(() => alice.call('createSandbox'), 20_000)
    expect(body.state).toBe('active')
  },
)
