/**
 * A tenant who does the worst, beside a tenant who measures:
 *
 *     await withNeighbour(world, async ({ account, params, sh }) => {
 *       await sh('yes | head -c 100000000')
 *     })
 *
 * Both have an account and a sandbox of their own in the same world. One API and one worker, as `startWorld`
 * gives them unless told, are what both must share.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Account } from '../support/account.ts'
import type { World } from '../support/index.ts'
import { type Inside, inside } from '../support/inside.ts'
import { median } from '../support/measure.ts'
import { noteMeasured } from '../support/measured.ts'
import { memoryOf, peakMemory } from '../support/memory.ts'
import { boundOf, holdAgainst } from './verdict.ts'

export interface Tenant extends Inside {
  account: Account
  /** Of the routes of its sandbox. */
  params: { id: string }
}

export interface NeighbourOptions {
  /** What a `true` may take in any case: a busy machine is nobody's fault. 2500 unless told. */
  floorMs?: number
  /** By how much an API or a worker may grow meanwhile. 256 unless told. */
  growthMiB?: number
}

export interface Measurement<T> {
  result: T
  /** Median of the neighbour's `true` before or after, and its slowest meanwhile, in milliseconds. */
  usualMs: number
  slowestMs: number
  /** How many were run meanwhile. */
  count: number
  /** By how much each API, then each worker, grew at most. */
  growthMiB: number[]
}

/** The stalls that this is about took 10 s and more; two tests and what they start share two cores. */
const usualFloorMs = 2_500
const usualRounds = 20
const warmUpRounds = 40
/** However short the work is. */
const minRounds = 5
/** Not a load of its own. */
const pauseMs = 20

/**
 * Lets a tenant do its worst, and holds against the bounds how a neighbour fares meanwhile: each `true` takes less
 * than ten times its usual time, nothing of the neighbour's fails (a command that was there before goes on), and no
 * process grows beyond bounds.
 * @param work what the hostile tenant does; how it fares itself is for the test to say
 */
export async function withNeighbour<T>(
  world: World,
  work: (hostile: Tenant) => Promise<T>,
  { floorMs = usualFloorMs, growthMiB = 256 }: NeighbourOptions = {},
): Promise<Measurement<T>> {
  const [hostile, neighbour] = await Promise.all([settle(world), settle(world)])
  const usual = async () => median(await measure(neighbour, (rounds) => rounds < usualRounds))
  const usualBeforeMs = await usual()
  // The heap of a process that has just started is small. Ordinary load makes it grow as well, to a size that stays.
  await Promise.all(Array.from({ length: 8 }, () => measure(neighbour, (rounds) => rounds < warmUpRounds)))
  const waiting = await runsOn(neighbour)
  const processes = [...world.apis, ...world.workers]
  const before = processes.map(memoryOf)

  let isOver = false
  let result: T
  let times: number[] = []
  // What this process is late by itself, under all that the hostile tenant sends, is not Sandlot's.
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
  // On a machine that others use, what is usual changes.
  const usualMs = Math.max(usualBeforeMs, await usual())

  const growth = peaks.map((bytes, index) => Math.round((bytes - before[index]!) / 1024 / 1024))
  const slowestMs = Math.max(...times)
  const growths = Object.fromEntries(growth.map((mebibytes, index) => [processes[index]!.name, mebibytes]))
  const figures = { usualMs, slowestMs, ownMs: own.max / 1e6, growthMiB: growths }
  const bounds = { floorMs, growthMiB }
  console.info(
    `neighbour: true ${usualMs.toFixed(0)} ms, then ${times.length} of at most ${slowestMs.toFixed(0)} ms ` +
      `(bound ${boundOf(figures, bounds).toFixed(0)} ms); grown by ${growth.join(', ')} MiB`,
  )
  noteMeasured(slowestMs, boundOf(figures, bounds))
  holdAgainst(bounds, figures)
  await waiting.mustBeThere()
  await neighbour.account.call('destroySandbox', { params: neighbour.params })
  // By now it may be allowed nothing at all.
  await hostile.account.call('destroySandbox', { params: hostile.params }).catch(() => {})
  return { result: result!, usualMs, slowestMs, count: times.length, growthMiB: growth }
}

async function settle(world: World): Promise<Tenant> {
  const account = await world.account()
  const { body } = await account.call('createSandbox')
  const params = { id: body.id }
  // One that is still starting would be measured for it.
  await world.eventually(
    async () => (await account.call('getSandbox', { params })).body.ready_at !== null,
    60_000,
  )
  return { account, params, ...inside(account, params) }
}

/** Runs `true` again and again. @returns what each took, in milliseconds */
async function measure({ exec }: Tenant, goOn: (rounds: number) => boolean): Promise<number[]> {
  const times: number[] = []
  while (goOn(times.length)) {
    const startedAt = performance.now()
    expect(await exec({ command: ['true'] })).toMatchObject({ status: 'exited', exit_code: 0 })
    times.push(performance.now() - startedAt)
    await sleep(pauseMs)
  }
  return times
}

/** A command whose client waits for it all the while; what it says at its end tells that nothing befell it. */
async function runsOn({ sh }: Tenant): Promise<{ mustBeThere(): Promise<void> }> {
  await sh('mkfifo word')
  const running = sh('read -r word < word; echo "$word"', { timeout_ms: 1_200_000 })
  // Told below; until then nobody waits for it.
  running.catch(() => {})
  return {
    async mustBeThere() {
      // Does not wait for ever where nobody reads.
      await sh('echo there > word', { timeout_ms: 5_000 })
      expect(await running).toMatchObject({ status: 'exited', stdout: 'there\n' })
    },
  }
}
