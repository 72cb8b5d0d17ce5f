import { expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import { runCooperatively, type Steps } from '../../workers/files/cooperative.ts'
import { readRecords } from '../../workers/files/records.ts'
import { replaceExact } from '../../workers/files/replace.ts'

/** Uses the CPU for one millisecond per step. */
function* busy(steps: number, onEnd = () => {}): Steps<void> {
  for (let step = 0; step < steps; step++) {
    const until = performance.now() + 1
    while (performance.now() < until);
    yield
  }
  onEnd()
}

/** @returns the maximum CPU time of an event-loop iteration during the work, in milliseconds */
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

test('cooperative work regularly yields to the event loop, no matter how much work there is', async () => {
  const content = Buffer.alloc(limits.editBytes / 2, 'a')
  const replaced = () =>
    runCooperatively('alice', replaceExact(content, { old: 'a', new: 'bc', replaceAll: true }))
  // One slice of each would take 60 ms.
  const work = () =>
    Promise.all([replaced(), ...Array.from({ length: 20 }, () => runCooperatively('alice', busy(20)))])
  // Garbage collection can lengthen an iteration, but not in each of three runs.
  const ms = [await longestRound(work), await longestRound(work), await longestRound(work)]
  expect(Math.min(...ms)).toBeLessThan(30)
})

test("accounts are served round-robin, so a small task does not wait for other accounts' large tasks", async () => {
  const ended: string[] = []
  const run = (account: string, steps: number) =>
    runCooperatively(
      account,
      busy(steps, () => ended.push(account)),
    )
  await Promise.all([...Array.from({ length: 20 }, () => run('alice', 20)), run('bob', 10)])
  expect(ended.indexOf('bob')).toBeLessThan(3)
})

test('the error of one task is reported, and the next task still runs', async () => {
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

test('a stream is divided into the same records, no matter how it is split into chunks', async () => {
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
