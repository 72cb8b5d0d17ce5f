import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { stoodStill, whenSilentFor } from '../shared/platform/standstill.ts'

/** Nothing runs in this process meanwhile. */
const freeze = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

test('patience with others does not end by a standstill of our own: what came meanwhile is read first', async () => {
  const other = spawn('/bin/sh', ['-c', 'echo begun; read -r _; sleep 0.5; echo there'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  await once(other.stdout, 'data')
  const before = performance.now()
  expect(stoodStill(before)).toBe(false)
  const heard: string[] = []
  other.stdin.end('go\n')
  await new Promise((resolve) => setTimeout(resolve, 50))
  setTimeout(() => heard.push('a plain timer'), 1_000)
  const stop = whenSilentFor(1_000, () => heard.push('silence'))
  other.stdout.once('data', () => {
    heard.push('word')
    stop()
  })
  // From here on timers come before what lies at a connection.
  await new Promise((resolve) => setImmediate(resolve))
  freeze(1_600)
  await new Promise((resolve) => setTimeout(resolve, 3_500))
  expect(heard).toEqual(['a plain timer', 'word'])
  expect(stoodStill(before)).toBe(true)
  expect(stoodStill(before, 5_000)).toBe(false)
  expect(stoodStill(performance.now())).toBe(false)
})

test('silence is told when there is one, also some time after a standstill', async () => {
  freeze(1_100)
  const from = performance.now()
  await new Promise<void>((resolve) => whenSilentFor(100, resolve))
  expect(performance.now() - from).toBeGreaterThan(100)
})
