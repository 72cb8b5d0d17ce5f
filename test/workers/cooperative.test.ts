/** Long work on files, cut so that others have their turns. */
import { expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import { runCooperatively, type Steps } from '../../workers/files/cooperative.ts'
import { readRecords } from '../../workers/files/records.ts'
import { replaceExact } from '../../workers/files/replace.ts'

/** Keeps the processor for a millisecond a step. */
function* busy(steps: number, onEnd = () => {}): Steps<void> {
  for (let step = 0; step < steps; step++) {
    const until = performance.now() + 1
    while (performance.now() < until);
    yield
  }
  onEnd()
}

/** @returns the most of the processor's time that one round of the event loop took meanwhile, in milliseconds */
async function longestRound(work: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let isOver = false
  const watch = (before: NodeJS.CpuUsage) => {
    const { user, system } = process.threadCpuUsage(before)
    longest = Math.max(longest, (user + system) / 1000)
    if (!isOver) setImmediate(watch, process.threadCpuUsage())
  }
  watch(process.threadCpuUsage())
  await work()
  isOver = true
  return longest
}

test('however much of it there is, work on files leaves the event loop to others again and again', async () => {
  const content = Buffer.alloc(limits.editBytes / 2, 'a')
  const replaced = () =>
    runCooperatively('alice', replaceExact(content, { old: 'a', new: 'bc', replaceAll: true }))
  // A slice of each of them would be 60 ms.
  const work = () =>
    Promise.all([replaced(), ...Array.from({ length: 20 }, () => runCooperatively('alice', busy(20)))])
  // A collection of garbage lengthens a round too, but not one of each three.
  const ms = [await longestRound(work), await longestRound(work), await longestRound(work)]
  expect(Math.min(...ms)).toBeLessThan(30)
})

test('accounts take turns, so that one with little to do need not wait for one with much', async () => {
  const ended: string[] = []
  const run = (account: string, steps: number) =>
    runCooperatively(
      account,
      busy(steps, () => ended.push(account)),
    )
  await Promise.all([...Array.from({ length: 20 }, () => run('alice', 20)), run('bob', 10)])
  expect(ended.indexOf('bob')).toBeLessThan(3)
})

test('what throws is thrown, and the next has its turn', async () => {
  const fails = runCooperatively(
    'alice',
    (function* (): Steps<void> {
      yield
      throw new Error('no')
    })(),
  )
  const [failed, done] = await Promise.allSettled([fails, runCooperatively('alice', busy(1))])
  expect([failed.status, done.status]).toEqual(['rejected', 'fulfilled'])
})

test('records are cut alike wherever the chunks are, and too long ones passed over and told', async () => {
  const text = `a|||bb||${'c'.repeat(9)}||${'d'.repeat(10)}||${'e'.repeat(50)}|f||g|||h`
  for (const size of [1, 2, 3, 7, 1000]) {
    const records: string[] = []
    const take = readRecords('alice', {
      delimiter: Buffer.from('||'),
      maxBytes: 9,
      onRecord: (record) => void records.push(record.toString()),
      onTooLong: () => void records.push('too long'),
    })
    for (let at = 0; at < text.length; at += size) await take(Buffer.from(text.slice(at, at + size)))
    expect(records).toEqual(['a', '|bb', 'c'.repeat(9), 'too long', 'too long', 'g'])
  }
})
