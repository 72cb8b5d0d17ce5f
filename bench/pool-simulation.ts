/**
 * Simulates a day of the warm pool, and compares fixed pools to pools that follow demand
 * (workers/pool/demand.ts).
 *   node bench/pool-simulation.ts [START-SECONDS]
 */
import type { PoolSize } from '../shared/platform/settings-pools.ts'
import { demandLimits, sizeFor } from '../workers/pool/demand.ts'
import { allowedStarts } from '../workers/pool/plan.ts'
import { table } from './figures.ts'

const day = 24 * 3600

/** Arrival times in seconds: few at night, most around midday, and four bursts from a class of twenty. */
function arrivalsOfADay(random = seeded(7)): number[] {
  const arrivals: number[] = []
  for (let second = 0; second < day; second++) {
    const hour = second / 3600
    const daylight = Math.max(0, Math.sin(((hour - 6) / 14) * Math.PI))
    const aSecond = hour > 6 && hour < 20 ? 0.002 + 0.12 * daylight ** 2 : 0.002
    if (random() < aSecond) arrivals.push(second)
    // Twenty people begin at nine, and again after each break.
    const isRush = [9, 10.5, 13, 14.5].includes(hour)
    if (isRush) for (let one = 0; one < 20; one++) arrivals.push(second + random() * 40)
  }
  return arrivals.sort((a, b) => a - b)
}

export interface Outcome {
  creates: number
  claimed: number
  podHours: number
  largest: number
}

/** @param startSeconds time until a new pod can be claimed */
export function simulate(arrivals: readonly number[], marks: PoolSize, startSeconds: number): Outcome {
  const { burstMs, memoryMs } = demandLimits
  const rushes = new Map<number, number>()
  let ready = marks.min
  let starting: number[] = []
  let next = 0
  const outcome = { creates: arrivals.length, claimed: 0, podHours: 0, largest: ready }
  for (let now = 0; now < day; now++) {
    ready += starting.filter((done) => done <= now).length
    starting = starting.filter((done) => done > now)
    for (; next < arrivals.length && arrivals[next]! < now + 1; next++) {
      const rush = Math.floor((arrivals[next]! * 1000) / burstMs)
      rushes.set(rush, (rushes.get(rush) ?? 0) + 1)
      if (ready === 0) continue
      ready -= 1
      outcome.claimed += 1
    }
    for (const rush of rushes.keys()) if (rush * burstMs < now * 1000 - memoryMs) rushes.delete(rush)
    const size = sizeFor(marks, Math.max(0, ...rushes.values()))
    ready = Math.min(ready, size)
    const begun = Math.min(size - ready - starting.length, allowedStarts(size, 0, 0) - starting.length)
    for (let count = 0; count < begun; count++) starting.push(now + startSeconds)
    outcome.podHours += (ready + starting.length) / 3600
    outcome.largest = Math.max(outcome.largest, ready + starting.length)
  }
  return outcome
}

/** Mulberry32, which yields the same numbers on every machine. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function print(startSeconds: number) {
  const arrivals = arrivalsOfADay()
  const rowOf = (name: string, marks: PoolSize) => {
    const { creates, claimed, podHours, largest } = simulate(arrivals, marks, startSeconds)
    return [name, `${((100 * claimed) / creates).toFixed(1)}%`, podHours.toFixed(0), String(largest)]
  }
  const fixed = [1, 2, 4, 8, 16].map((size) => rowOf(String(size), { min: size, max: size }))
  const following = [
    { min: 1, max: 8 },
    { min: 1, max: 16 },
    { min: 2, max: 16 },
  ].map((marks) => rowOf(`${marks.min}..${marks.max}`, marks))
  console.log(`\n${arrivals.length} creates in a day, a pod starts in ${startSeconds} s\n`)
  console.log(table(['pool', 'creates that claimed', 'pod-hours', 'largest'], [...fixed, ...following]))
}

if (import.meta.main) print(Number(process.argv[2] ?? 2))
