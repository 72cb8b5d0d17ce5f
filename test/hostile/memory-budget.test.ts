/** Account and process limits of the memory budget, and the order of rejections. */
import pino from 'pino'
import { expect, test } from 'vitest'
import { MemoryBudget, memoryKinds } from '../../shared/platform/memory-budget.ts'

const ofAccount = 1_000
const ofAll = 2_500
const mebibyte = 1024 * 1024

function open() {
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  return { memoryBudget: new MemoryBudget({ ofAccount, ofAll }, log), lines }
}

const refusal = (work: () => void) => {
  try {
    work()
  } catch (error) {
    return error
  }
  throw new Error('the reservation was not rejected')
}

test('one limit covers all kinds of memory that an account uses', () => {
  const { memoryBudget } = open()
  const request = memoryBudget.open('acc_1', 'requests')
  const stdin = memoryBudget.open('acc_1', 'stdin')
  request.add(600)
  stdin.add(400)
  expect(memoryBudget.sums).toMatchObject({ requests: 600, stdin: 400 })
  expect(refusal(() => stdin.add(1))).toMatchObject({ code: 'rate_limited', retryAfterSeconds: 1 })
  expect(memoryBudget.sums.stdin).toBe(400)
  request.give(100)
  stdin.add(100)
  request.free()
  stdin.add(500)
  expect(() => memoryBudget.open('acc_2', 'answers').add(ofAccount)).not.toThrow()
  for (const holding of [stdin, request]) holding.free()
  expect(memoryBudget.sums).toMatchObject({ requests: 0, stdin: 0, answers: ofAccount })
})

test('a released reservation counts as zero, and releasing it again has no effect', () => {
  const { memoryBudget } = open()
  const holding = memoryBudget.open('acc_1', 'requests')
  holding.add(10)
  holding.free()
  holding.free()
  holding.add(10)
  holding.give(10)
  expect(memoryBudget.sums.requests).toBe(0)
})

test("memory that moves from a request to a command's stdin counts only once", () => {
  const { memoryBudget } = open()
  const request = memoryBudget.open('acc_1', 'requests')
  request.add(ofAccount)
  const stdin = request.move('stdin', 900)
  expect(memoryBudget.sums).toMatchObject({ requests: 100, stdin: 900 })
  expect(() => request.add(1)).toThrow()
  request.free()
  expect(memoryBudget.sums).toMatchObject({ requests: 0, stdin: 900 })
  stdin.free()
  expect(Object.values(memoryBudget.sums)).toEqual(memoryKinds.map(() => 0))
})

test("unauthenticated clients share a quarter of one account's limit", () => {
  const { memoryBudget } = open()
  memoryBudget.open(undefined, 'requests').add(150)
  const other = memoryBudget.open(undefined, 'requests')
  other.add(100)
  expect(refusal(() => other.add(1))).toMatchObject({ code: 'unavailable' })
})

test('when memory runs low, requests of the account using the most memory are rejected first', () => {
  const { memoryBudget } = open()
  const [first, second, third, small] = ['a', 'b', 'c', 'd'].map((id) => memoryBudget.open(id, 'answers'))
  first!.add(900)
  second!.add(900)
  third!.add(700)
  // The total budget is used up, but small accounts may still use part of the reserve.
  expect(refusal(() => first!.add(10))).toMatchObject({ code: 'rate_limited', retryAfterSeconds: 2 })
  small!.add(300)
  third!.add(100)
  expect(refusal(() => third!.add(101))).toMatchObject({ code: 'rate_limited' })
  expect(refusal(() => small!.add(400))).toMatchObject({ code: 'rate_limited' })
  first!.free()
  third!.add(200)
})

test('the number of open streams of each kind is limited', () => {
  const memoryBudget = new MemoryBudget(
    { ofAccount: mebibyte, ofAll: 2 * mebibyte },
    pino({ level: 'silent' }),
  )
  const open = (accountId: string, kind: 'streams' | 'uploads' = 'streams') =>
    memoryBudget.openStream(accountId, kind, 4)
  const opened = Array.from({ length: 4 }, () => open('acc_1'))
  expect(memoryBudget.sums.streams).toBe(mebibyte / 2)
  expect(refusal(() => open('acc_1'))).toMatchObject({ code: 'rate_limited' })
  open('acc_2')
  open('acc_1', 'uploads').free()
  opened[0]!.free()
  opened[0]!.free()
  open('acc_1')
  expect(() => open('acc_1')).toThrow()
})

test('a stream is rejected and not counted if there is no memory for its buffers', () => {
  const { memoryBudget } = open()
  expect(refusal(() => memoryBudget.openStream('acc_1', 'streams'))).toMatchObject({ code: 'rate_limited' })
  expect(memoryBudget.sums.streams).toBe(0)
})

test('memory-budget rejections of one account are logged at most once per interval', () => {
  const { memoryBudget, lines } = open()
  const holding = memoryBudget.open('acc_1', 'stdin')
  holding.add(990)
  for (let round = 0; round < 100; round++) refusal(() => holding.add(20))
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatchObject({ account_id: 'acc_1', kind: 'stdin', held_bytes: 990 })
})
