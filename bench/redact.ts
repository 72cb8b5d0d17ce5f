/** `node bench/redact.ts`: measures the cost of redaction, first without a worker, then through a worker. */
import { randomBytes } from 'node:crypto'
import { buildPatterns } from '../workers/secrets/patterns.ts'
import { Redactor } from '../workers/secrets/redactor.ts'
import { median, table } from './figures.ts'
import { type Stack, startStack } from './stack.ts'

const mebibyte = 1024 * 1024
const chunkBytes = 64 * 1024
const rounds = 7
const streamMebibytes = 64

/** Returns a random secret. Its first byte is the byte that fills one of the samples. */
const token = () => `sk-${randomBytes(24).toString('base64url')}`
const secretsOf = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`SECRET_${at}`, token()]))

const line = (at: number) =>
  `2026-11-21T12:00:00.${at % 1000}Z [info] GET /v1/things/${at} 200 in 3.2 ms "a client" ${(at * 7919) % 104729}\n`
const samples: Record<string, Buffer> = {
  'a log': fill(line),
  base64: fill(() => `${randomBytes(57).toString('base64')}\n`),
  'one byte': Buffer.alloc(8 * mebibyte, 's'),
}

function fill(makeLine: (at: number) => string): Buffer {
  const lines: string[] = []
  for (let at = 0, size = 0; size < 8 * mebibyte; at++) {
    const text = makeLine(at)
    lines.push(text)
    size += text.length
  }
  return Buffer.from(lines.join('')).subarray(0, 8 * mebibyte)
}

/** Returns MiB per second of CPU time, which does not depend on other processes. */
async function rateOf(secrets: Record<string, string>, bytes: Buffer): Promise<number> {
  const sought = await buildPatterns(secrets)
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const redactor = new Redactor(sought)
    const before = process.cpuUsage()
    for (let at = 0; at < bytes.length; at += chunkBytes) redactor.push(bytes.subarray(at, at + chunkBytes))
    const { user, system } = process.cpuUsage(before)
    times.push((user + system) / 1000)
  }
  return bytes.length / mebibyte / (median(times) / 1000)
}

async function stream(stack: Stack, id: string, reveal: boolean): Promise<number> {
  const turns = streamMebibytes / 8
  const command = `i=0; while [ $i -lt ${turns} ]; do cat log; i=$((i+1)); done`
  const result = await stack.request('POST', `/v1/sandboxes/${id}/exec`, { command, reveal })
  if (result.stdout_bytes !== streamMebibytes * mebibyte)
    throw new Error(`it printed ${result.stdout_bytes} bytes`)
  return Number(result.duration_ms)
}

async function measureStream(secrets: Record<string, string>) {
  await using stack = await startStack({ SANDBOX_DRIVER: 'local' })
  const { id } = await stack.request('POST', '/v1/sandboxes', {})
  for (const [name, value] of Object.entries(secrets))
    await stack.request('POST', '/v1/secrets', { name, value })
  await stack.request('POST', `/v1/sandboxes/${id}/files/create`, {
    path: 'log',
    content: samples['a log']!.toString(),
  })
  const plain: number[] = []
  const redacted: number[] = []
  // Alternates between both modes, so that the conditions are the same.
  for (let round = 0; round <= rounds; round++) {
    const ms = [await stream(stack, String(id), true), await stream(stack, String(id), false)] as const
    if (round === 0) continue
    plain.push(ms[0])
    redacted.push(ms[1])
  }
  await stack.request('DELETE', `/v1/sandboxes/${id}`)
  return { plainMs: median(plain), redactedMs: median(redacted) }
}

const counts = [1, 10, 64]
const rates: { name: string; rates: number[] }[] = []
for (const [name, bytes] of Object.entries(samples)) {
  rates.push({ name, rates: [] })
  for (const count of counts) rates.at(-1)!.rates.push(await rateOf(secretsOf(count), bytes))
}
console.log('The redactor without a worker, MiB/s, by the number of secrets of 35 characters:\n')
console.log(
  table(
    ['output', ...counts.map(String)],
    rates.map(({ name, rates }) => [name, ...rates.map((rate) => rate.toFixed(0))]),
  ),
)

const secrets = secretsOf(10)
const { plainMs, redactedMs } = await measureStream(secrets)
const rate = (ms: number) => `${((streamMebibytes / ms) * 1000).toFixed(0)} MiB/s`
console.log(`\n${streamMebibytes} MiB of a log with 10 secrets through a worker, medians of ${rounds}:`)
console.log(
  `  revealed ${rate(plainMs)}, redacted ${rate(redactedMs)}: ratio ${(redactedMs / plainMs).toFixed(3)}`,
)
