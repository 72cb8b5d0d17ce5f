import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { wasStalled, whenSilentFor } from '../shared/platform/event-loop-stall.ts'
import { connectRedis } from '../shared/platform/redis.ts'
import { shareWorld } from './support/shared.ts'

const world = shareWorld({ apis: 0, workers: 0 })

const freeze = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

test('after an event-loop stall, a pending reply is read before the peer can be considered unresponsive', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-stall-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [go, said] = [join(folder, 'go'), join(folder, 'said')]
  const script = 'echo begun; until [ -e "$0" ]; do sleep 0.05; done; echo there; : >"$1"'
  const other = spawn('/bin/sh', ['-c', script, go, said], { stdio: ['ignore', 'pipe', 'ignore'] })
  await once(other.stdout, 'data')
  const before = performance.now()
  expect(wasStalled(before)).toBe(false)
  const heard: string[] = []
  setTimeout(() => heard.push('a plain timer'), 1_000)
  const stop = whenSilentFor(1_000, () => heard.push('livenessTimeouts'))
  const word = once(other.stdout, 'data').then(() => {
    heard.push('word')
    stop()
  })
  // From here on, timers run before pending data is read.
  await nextTurn()
  writeFileSync(go, '')
  freeze(1_600)
  while (!existsSync(said)) freeze(10)
  await word
  expect(heard).toEqual(['a plain timer', 'word'])
  expect(wasStalled(before)).toBe(true)
  expect(wasStalled(before, 30_000)).toBe(false)
  expect(wasStalled(performance.now())).toBe(false)
})

test('an unresponsive peer is still detected after an event-loop stall', async () => {
  freeze(1_100)
  const from = performance.now()
  await new Promise<void>((resolve) => whenSilentFor(100, resolve))
  expect(performance.now() - from).toBeGreaterThan(100)
})

test('a Redis command succeeds if its reply arrived during an event-loop stall', async () => {
  const redis = connectRedis(world.plugs.redis.url, 'fail-fast', pino({ level: 'silent' }))
  onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  const reply = redis.ping()
  await nextTurn()
  freeze(2_300)
  expect(await reply).toBe('PONG')
})
