/** Retries while the service is unavailable, with an injected clock. */
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { CliError } from '../../cli/core/errors.ts'
import type { OpenExchange } from '../../cli/core/http.ts'
import { readAll } from '../../cli/exec/follow.ts'
import { RetryPolicy, retrying } from '../../cli/exec/retry.ts'
import { formatEvent } from '../../shared/contract/server-sent-events.ts'

const broken = new CliError('network', 'The connection broke.')
const refusedFor = (retry_after: number) =>
  new CliError('rate_limited', 'Too many.', { details: { status: 429, retry_after } })

/** @returns the pauses, and the time without a connection */
function pausesOf(options: { maxMs?: number }, error: unknown = broken) {
  let now = 1_000
  const retry = new RetryPolicy({ ...options, now: () => now })
  const pauses: number[] = []
  for (;;) {
    const pause = retry.afterFailure(error)
    if (pause === undefined) return { pauses, disconnectedMs: retry.disconnectedMs }
    pauses.push(pause)
    now += pause
  }
}

test('the client retries a broken command stream for 30 s, but a single request only five times', () => {
  const first = [100, 300, 1_000, 2_000, 4_000]
  const later = [4_000, 4_000, 4_000, 4_000, 4_000, 4_000]
  expect(pausesOf({})).toEqual({ pauses: [...first, ...later], disconnectedMs: 31_400 })
  expect(pausesOf({ maxMs: 0 })).toEqual({ pauses: first, disconnectedMs: 7_400 })
})

test.each([
  ['a broken connection', broken, true],
  ['an unavailable service', new CliError('unavailable', 'Unavailable.', { details: { status: 503 } }), true],
  ['a rejected request', new CliError('not_found', 'None.', { details: { status: 404 } }), false],
  ['a client error', new TypeError('x is not a function'), false],
])('the retry policy decides whether to retry after %s', (_, error, isTried) => {
  expect(pausesOf({}, error).pauses.length > 0).toBe(isTried)
})

test('waiting for a rate limit to reset does not consume the retry budget', () => {
  let now = 0
  const retry = new RetryPolicy({ now: () => now })
  for (; now < 200_000; now += 20_000) expect(retry.afterFailure(refusedFor(20))).toBe(20_000)
})

test('data received from the service restores the retry budget', () => {
  let now = 0
  const retry = new RetryPolicy({ now: () => now })
  for (; now < 29_000; now += 1_000) retry.afterFailure(broken)
  expect(retry).toMatchObject({ isFresh: false, disconnectedMs: 29_000 })
  retry.alive()
  expect(retry).toMatchObject({ isFresh: true, disconnectedMs: 0 })
  now += 60_000
  expect(retry.afterFailure(broken)).toBe(100)
})

test('the retry budget starts at the first failure', () => {
  let now = 0
  const retry = new RetryPolicy({ now: () => now })
  now = 3_600_000
  for (let failures = 0; failures < 6; failures++) expect(retry.afterFailure(broken)).toBeGreaterThan(0)
})

test('if every retry fails, the operation rejects with the last error', async () => {
  const errors = [1, 2, 3].map((number) => new CliError('network', `Broken for the ${number}.`))
  const left = [...errors]
  const fail = () => Promise.reject(left.shift())
  const retry = new RetryPolicy({ maxMs: 0, pausesMs: [1, 1] })
  await expect(retrying(fail, retry)).rejects.toBe(errors[2])
})

/** A stream of events that breaks after these pieces. */
function streamOf(pieces: string[]): OpenExchange {
  async function* breaking() {
    for (const piece of pieces) yield Buffer.from(piece)
    throw new Error('reset')
  }
  const response = Readable.from(breaking(), { objectMode: false })
  return { response, fail: () => broken } as unknown as OpenExchange
}

const [comment, start] = [':\n\n', formatEvent('0-0', 'start', { id: 'exec_1' })]

async function openedAgain(pieces: string[], most: number): Promise<number> {
  let opened = 0
  const reopen = async () => {
    if (++opened > most) throw new CliError('failed', 'Enough.')
    return streamOf(pieces)
  }
  const retry = new RetryPolicy({ maxMs: 0, pausesMs: [1, 1, 1] })
  const reading = readAll(streamOf([start]), reopen, { retry })
  await expect(Array.fromAsync(reading)).rejects.toBeInstanceOf(CliError)
  return opened
}

test('the client follows a silent command as long as keep-alives arrive', async () => {
  expect(await openedAgain([comment, comment], 20)).toBe(21)
})

test('the first comment in an event stream does not restore the retry budget', async () => {
  expect(await openedAgain([comment], 20)).toBe(3)
})
