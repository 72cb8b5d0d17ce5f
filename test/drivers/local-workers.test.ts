import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { root } from '../../scripts/root.mjs'
import { podName } from '../../shared/data/ids.ts'
import { isAlive, readStat } from '../../shared/platform/process-stat.mjs'
import type { PodDeath } from '../../workers/drivers/driver.ts'
import { destroyAllSandboxes } from '../../workers/drivers/local/destroy-all.ts'
import { makeRandom } from '../chaos/random.ts'
import { eventually, isSoak } from '../support/eventually.ts'
import { seed } from '../support/seed.ts'
import {
  commandOf,
  createReady,
  directory,
  findProcesses,
  keepDirectory,
  killFirstProcess,
  openDriver,
  openFiles,
  startWorker,
} from './local-world.ts'
import { run, shell, untilReady } from './processes.ts'
import { newSandboxId, ofSandbox } from './requests.ts'

keepDirectory()

describe('workers that die', () => {
  test("a sandbox survives kill -9 of its worker and of the worker's process group", async () => {
    const sandboxId = newSandboxId()
    const worker = startWorker({ sandboxId, script: 'sleep 600 >/dev/null 2>&1 & echo $!' })
    await worker.line()
    worker.go()
    const uid = await worker.line()
    const pid = JSON.parse(await worker.line()).stdout.trim()
    await worker.kill()
    const { driver } = openDriver()
    const found = (await driver.list()).find((pod) => pod.uid === uid)!
    expect(found.death).toBeUndefined()
    expect(await run(driver, found, shell(`kill -0 ${pid}`))).toMatchObject({ code: 0 })
    await driver.delete(found)
  })

  test('a killed launcher does not end sandboxes, and the next creation starts another launcher', async () => {
    const { driver, pod } = await createReady()
    const launchers = launchersOf(process.pid)
    for (const launcher of launchers) process.kill(launcher, 'SIGKILL')
    expect(launchers).not.toEqual([])
    expect(await run(driver, pod, shell('echo here'))).toMatchObject({ stdout: 'here\n' })
    const request = { ...ofSandbox(), image: 'any', deadlineSeconds: 60 }
    const next = await eventually(() => driver.create(request), 5_000)
    await untilReady(driver, next)
    await driver.delete(next)
  })

  test('the launcher ends with its worker', async () => {
    const worker = startWorker({})
    await worker.line()
    const launchers = launchersOf(worker.pid)
    expect(launchers).toHaveLength(1)
    await worker.kill()
    await eventually(() => !launchers.some((pid) => isAlive(pid)), 5_000)
  })

  test("a sandbox does not inherit its worker's file descriptors", async () => {
    const sandboxId = newSandboxId()
    const script = 'ls -l /proc/self/fd /proc/1/fd 2>/dev/null'
    const worker = startWorker({ sandboxId, script, inherits: join(directory, '.inherited') })
    await worker.line()
    expect(openFiles(worker.pid)).toContain(join(directory, '.inherited'))
    worker.go()
    await worker.line()
    expect(JSON.parse(await worker.line()).stdout).not.toContain('.inherited')
    for (const pid of findProcesses(podName(sandboxId)).filter((each) => each !== worker.pid)) {
      expect(openFiles(pid)).not.toContain(join(directory, '.inherited'))
    }
    await openDriver().driver.delete({ name: podName(sandboxId) })
  })

  test('if a worker dies while creating a sandbox, another worker can finish creating it or delete it', async () => {
    const { driver } = openDriver()
    // The time of death is random. The soak tests every millisecond.
    for (let ms = 0; ms < 24; ms += isSoak ? 1 : 3) {
      const sandboxId = newSandboxId()
      const worker = startWorker({ sandboxId })
      await worker.line()
      worker.go()
      await sleep(ms)
      await worker.kill()
      const before = (await driver.list()).find((pod) => pod.sandboxId === sandboxId)
      expect(before?.death).toBeUndefined()
      if (ms % 2 === 0) {
        const pod = await driver.create({ ...ofSandbox(sandboxId), image: 'any', deadlineSeconds: 60 })
        if (before) expect(pod.uid).toBe(before.uid)
        await untilReady(driver, pod)
        expect(await run(driver, pod, shell('echo here'))).toMatchObject({ stdout: 'here\n' })
      }
      await driver.delete({ name: podName(sandboxId) })
      expect((await driver.list()).find((pod) => pod.sandboxId === sandboxId)).toBeUndefined()
      await eventually(() => findProcesses(podName(sandboxId)).length === 0, 5_000)
    }
    expect(readdirSync(directory).filter((name) => name.startsWith('sbx-'))).toEqual([])
  })

  test('workers that concurrently create the same sandbox create only one pod', async () => {
    const sandboxId = newSandboxId()
    const workers = [1, 2, 3].map(() => startWorker({ sandboxId }))
    for (const worker of workers) await worker.line()
    for (const worker of workers) worker.go()
    const uids = await Promise.all(workers.map((worker) => worker.line()))
    expect(new Set(uids).size).toBe(1)
    const { driver } = openDriver()
    const pod = (await driver.list()).find((each) => each.sandboxId === sandboxId)!
    await untilReady(driver, pod)
    expect(findProcesses('supervise.sh').filter((pid) => commandOf(pid).includes(pod.name))).toHaveLength(1)
    await driver.delete(pod)
  })

  test('concurrent creates and deletes of the same sandbox leave no orphans', async () => {
    const drivers = [openDriver().driver, openDriver().driver]
    const sandboxId = newSandboxId()
    const name = podName(sandboxId)
    const random = makeRandom(seed)
    await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const pauseMs = random() * 30
        const driver = drivers[index % 2]!
        const pod = await driver.create({ ...ofSandbox(sandboxId), image: 'any', deadlineSeconds: 60 })
        await sleep(pauseMs)
        await driver.delete(index % 3 === 0 ? { name } : pod)
      }),
    )
    await drivers[0]!.delete({ name })
    expect(existsSync(join(directory, name))).toBe(false)
    await eventually(() => findProcesses(name).length === 0, 5_000)
  })

  test('a sandbox is not visible to a different installation', async () => {
    const { pod } = await createReady()
    const { driver } = openDriver({ installationId: 'another' })
    expect((await driver.list()).map((each) => each.uid)).not.toContain(pod.uid)
  })

  test('destroyAllSandboxes ends every sandbox in a directory', async () => {
    const own = mkdtempSync(join(tmpdir(), 'sandlot-local-'))
    onTestFinished(() => rmSync(own, { recursive: true }))
    const { driver } = await createReady({ directory: own })
    await driver.create({ ...ofSandbox(), image: 'any', deadlineSeconds: 60 })
    expect(await destroyAllSandboxes(own)).toBe(2)
    expect(await driver.list()).toEqual([])
    expect(findProcesses(own)).toEqual([])
  })

  test('if the `npm start` supervisor is killed, its watchdog destroys every sandbox', async () => {
    const own = mkdtempSync(join(tmpdir(), 'sandlot-local-'))
    onTestFinished(() => rmSync(own, { recursive: true }))
    const { driver } = await createReady({ directory: own })
    const code = `
      const { openWatchdog } = await import(${JSON.stringify(join(root, 'scripts/supervisor/data-folder.ts'))})
      openWatchdog(${JSON.stringify(own)}, { driver: 'local', localDirectory: ${JSON.stringify(own)} })
      console.log('ready')`
    const stack = spawn(process.execPath, ['--input-type=module', '-e', code], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(stack.stdout, 'data')
    stack.kill('SIGKILL')
    await eventually(async () => (await driver.list()).length === 0, 20_000)
    await eventually(() => findProcesses(own).length === 0, 5_000)
  })
})

test('a watch on the local driver reports killed sandboxes within two seconds, and also expired ones', async () => {
  const { pod, driver } = await createReady()
  const { pod: expiring } = await createReady({ deadlineSeconds: 5 })
  const deaths = new Map<string, PodDeath>()
  driver.watch((state) => deaths.set(state.uid, state.death))
  killFirstProcess(pod.name)
  await eventually(() => deaths.has(pod.uid), 2_000)
  expect(deaths.get(pod.uid)?.reason).toBe('pod_failed')
  await eventually(() => deaths.has(expiring.uid), 10_000)
  expect(deaths.get(expiring.uid)?.reason).toBe('expired')
})

const launchersOf = (worker: number): number[] =>
  findProcesses('launcher.mjs').filter((pid) => readStat(pid)?.[1] === String(worker))
