/**
 * A hostile tenant, and a neighbour who measures the effect on others:
 *   await withNeighbour(world, async ({ sh }) => { await sh('yes | head -c 100000000') })
 * Each has a separate account and sandbox. By default, both use the same API and worker.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Account } from '../support/account.ts'
import type { World } from '../support/index.ts'
import { median } from '../support/measure.ts'
import { noteMeasured } from '../support/measured.ts'
import { memoryOf, peakMemory } from '../support/memory.ts'
import { type Inside, inside } from '../support/sandbox-commands.ts'

export interface Tenant extends Inside {
  account: Account
  params: { id: string }
}

interface NeighbourOptions {
  /** Lower bound of the limit for `true`, because the machine may be busy. */
  floorMs?: number
  /** Allowed growth of an API or a worker during the work. */
  growthMiB?: number
}

/**
 * Default for `floorMs`. It is generous, because two tests share two cores; real stalls took at least 10 s.
 */
const usualFloorMs = 2_500
/** Limit for `true` under load, as a multiple of the median without load. */
const maxFactor = 10
const usualRounds = 20
const warmUpRounds = 40
const minRounds = 5
/** Pause between measurements, which keeps the measurement itself from being a load. */
const pauseMs = 20

/**
 * Checks that the neighbour's commands stay fast and do not fail, and that no process grows too much.
 * @returns the result of the hostile tenant's work
 */
export async function withNeighbour<T>(
  world: World,
  work: (hostile: Tenant) => Promise<T>,
  { floorMs = usualFloorMs, growthMiB = 256 }: NeighbourOptions = {},
): Promise<T> {
  const [hostile, neighbour] = await Promise.all([settle(world), settle(world)])
  const usual = async () => median(await measure(neighbour, (rounds) => rounds < usualRounds))
  const usualBeforeMs = await usual()
  // Ordinary load also grows a new process's heap to a stable size.
  await Promise.all(Array.from({ length: 8 }, () => measure(neighbour, (rounds) => rounds < warmUpRounds)))
  const waiting = await startWaiting(neighbour)
  const processes = [...world.apis, ...world.workers]
  const before = processes.map(memoryOf)

  let isOver = false
  let result: T
  let times: number[] = []
  // Delays of the test process itself do not count.
  const own = monitorEventLoopDelay({ resolution: 10 })
  own.enable()
  const peaks = await peakMemory(processes, async () => {
    const measuring = measure(neighbour, (rounds) => !isOver || rounds < minRounds)
    const worst = work(hostile).finally(() => {
      isOver = true
    })
    ;[result, times] = await Promise.all([worst, measuring])
  })
  own.disable()
  // The speed of a shared machine varies.
  const usualMs = Math.max(usualBeforeMs, await usual())

  const growth = peaks.map((bytes, index) => Math.round((bytes - before[index]!) / 1024 / 1024))
  const slowestMs = Math.max(...times)
  const limitMs = Math.max(floorMs, maxFactor * usualMs) + own.max / 1e6
  console.info(
    `neighbour: true ${usualMs.toFixed(0)} ms, then ${times.length} of at most ${slowestMs.toFixed(0)} ms ` +
      `(limit ${limitMs.toFixed(0)} ms); grown by ${growth.join(', ')} MiB`,
  )
  noteMeasured(slowestMs, limitMs)
  expect(slowestMs, 'the slowest `true` of the neighbour, in ms').toBeLessThan(limitMs)
  for (const [index, { name }] of processes.entries())
    expect(growth[index], `MiB that ${name} grew by`).toBeLessThan(growthMiB)
  await waiting.assertRunning()
  await neighbour.account.call('destroySandbox', { params: neighbour.params })
  // The request may be rate-limited.
  await hostile.account.call('destroySandbox', { params: hostile.params }).catch(() => {})
  return result!
}

async function settle(world: World): Promise<Tenant> {
  const account = await world.account()
  const { body } = await account.call('createSandbox')
  const params = { id: body.id }
  // A starting sandbox would distort the measurement.
  await world.eventually(
    async () => (await account.call('getSandbox', { params })).body.ready_at !== null,
    60_000,
  )
  return { account, params, ...inside(account, params) }
}

/** @returns the duration of each `true`, in milliseconds */
async function measure({ exec }: Tenant, shouldContinue: (rounds: number) => boolean): Promise<number[]> {
  const times: number[] = []
  while (shouldContinue(times.length)) {
    const startedAt = performance.now()
    expect(await exec({ command: ['true'] })).toMatchObject({ status: 'exited', exit_code: 0 })
    times.push(performance.now() - startedAt)
    await sleep(pauseMs)
  }
  return times
}

/** Starts a command that waits until `assertRunning` checks it. */
async function startWaiting({ sh }: Tenant): Promise<{ assertRunning(): Promise<void> }> {
  await sh('mkfifo word')
  const running = sh('read -r word < word; echo "$word"', { timeout_ms: 1_200_000 })
  // `assertRunning` reports failures.
  running.catch(() => {})
  return {
    async assertRunning() {
      // Times out if the command has stopped reading.
      await sh('echo there > word', { timeout_ms: 5_000 })
      expect(await running).toMatchObject({ status: 'exited', stdout: 'there\n' })
    },
  }
}
