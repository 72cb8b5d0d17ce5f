/** How accounts share a worker's time for output. */
import { expect, test } from 'vitest'
import { makePace } from '../../workers/shell/pace.ts'

const mib = 1024 * 1024

/** Each account prints as fast as it may, in pieces of its size, for so long. @returns MiB a second of each */
function race(
  accounts: { bytes: number; readers: number }[],
  { seconds = 20, among = [] as string[], busy = (_printed: number): number => 0 } = {},
): number[] {
  let now = 0
  let lately = 0
  const pace = makePace(
    () => now,
    () => {
      const part = busy(lately)
      lately = 0
      return part
    },
  )
  const next = accounts.map(() => 0)
  const printed = accounts.map(() => 0)
  for (; now < seconds * 1000; now++) {
    for (const id of among) pace.see(id)
    for (const [index, { bytes, readers }] of accounts.entries()) {
      while (next[index]! <= now) {
        printed[index]! += bytes
        lately += bytes
        // No more than a machine can in a millisecond.
        next[index] = now + Math.max(0.01, pace.spend(`account ${index}`, bytes, readers))
        if (next[index]! < now + 1) break
      }
    }
  }
  return printed.map((bytes) => bytes / mib / seconds)
}

const chunk = 64 * 1024

test('the only busy account has more than one of several, and followed output costs more', () => {
  const [alone] = race([{ bytes: chunk, readers: 0 }])
  const [beside] = race([{ bytes: chunk, readers: 0 }], { among: ['neighbour'] })
  const [followed] = race([{ bytes: chunk, readers: 1 }], { among: ['neighbour'] })
  expect(beside! / alone!).toBeLessThan(0.9)
  expect(beside).toBeLessThan(55)
  expect(followed).toBeLessThan(17)
  expect(followed).toBeGreaterThan(10)
})

test('accounts that print much share alike, and small pieces cost as if they were larger', () => {
  const two = race([
    { bytes: chunk, readers: 1 },
    { bytes: chunk, readers: 1 },
  ])
  expect(two[0]! + two[1]!).toBeLessThan(17)
  expect(Math.abs(two[0]! - two[1]!)).toBeLessThan(1)
  const [lines] = race([{ bytes: 2, readers: 1 }], { among: ['neighbour'] })
  // Some 4,000 pieces a second.
  expect(lines! * mib).toBeLessThan(2 * 5_000)
})

test('who prints little never waits, whatever others print', () => {
  let now = 0
  const pace = makePace(
    () => now,
    () => 0,
  )
  for (; now < 10_000; now++) {
    for (let index = 0; index < 10; index++) pace.spend('chatty', chunk, 1)
    if (now % 20 === 0) expect(pace.spend('quiet', 200, 1)).toBe(0)
  }
})

test('an account that went away counts no more', () => {
  let now = 0
  const pace = makePace(
    () => now,
    () => 0,
  )
  const wait = () => {
    // Whatever there was for a start is used up.
    for (let index = 0; index < 40; index++) pace.spend('chatty', chunk, 1)
    return pace.spend('chatty', 10 * mib, 1)
  }
  pace.see('neighbour')
  const beside = wait()
  now += 60_000
  expect(wait()).toBeLessThan(0.7 * beside)
})

test('on a machine that can do less, chatty accounts have less: the event loop stays free for half of its time', () => {
  // It could pass on 4 MiB/s, with nothing else to do.
  const busy = (printed: number) => Math.min(1, printed / (0.4 * mib))
  const [slow] = race([{ bytes: chunk, readers: 1 }], { among: ['neighbour'], busy })
  expect(slow).toBeLessThan(3)
  expect(slow).toBeGreaterThan(1)
})

test('each reader of a command costs: a hundred of them get no more than one', () => {
  const [one] = race([{ bytes: chunk, readers: 1 }], { among: ['neighbour'] })
  const [eight] = race([{ bytes: chunk, readers: 8 }], { among: ['neighbour'] })
  expect(8 * eight!).toBeLessThan(1.4 * one!)
})
