/**
 * `node bench/cli.ts`: measures the client's startup time relative to `node -e 0`.
 * Exits with status 1 if a budget is exceeded. The service is a stub that responds immediately.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { cpus } from 'node:os'
import { text } from 'node:stream/consumers'
import { stripVTControlCharacters } from 'node:util'
import { buildCli } from '../scripts/build-cli.mjs'
import { clientPath, Home } from '../test/cli/client.ts'
import { openTerminal } from '../test/cli/terminal.ts'
import { median, percentile, table } from './figures.ts'

const rounds = Number(process.argv[2] ?? 21)
const warmUp = 2

interface Measure {
  name: string
  /** As a multiple of Node's own startup time. */
  budget?: number
  run: () => Promise<number>
}

const service = await startService()
using home = new Home()
const env = home.environment({ SANDLOT_URL: service.url, SANDLOT_API_KEY: 'sandlot_live_bench' })

const measures: Measure[] = [
  { name: 'node -e 0', run: () => untilEnd(['-e', '0']) },
  { name: 'config show', budget: 2, run: () => untilEnd([clientPath, 'config', 'show']) },
  { name: 'session ls, to its connection', budget: 2, run: untilConnection },
  { name: 'mcp serve, to its answer to initialize', budget: 4, run: untilAnswer },
  { name: 'the picker, to its first frame', budget: 6, run: untilFrame },
]

await buildCli()
const times = new Map<Measure, number[]>(measures.map((measure) => [measure, []]))
for (let round = -warmUp; round < rounds; round++) {
  for (const measure of measures) {
    const ms = await measure.run()
    if (round >= 0) times.get(measure)!.push(ms)
  }
}
const bare = median(times.get(measures[0]!)!)
const rows = [...times].map(([{ name, budget }, each]) => {
  const ratio = median(each) / bare
  const verdict = budget === undefined ? '' : `${budget}${ratio > budget ? ' OVER' : ''}`
  return [
    name,
    ...[0.5, 0.9].map((share) => `${percentile(each, share).toFixed(1)} ms`),
    ratio.toFixed(2),
    verdict,
  ]
})
console.log(
  `\n${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}, ${rounds} rounds\n`,
)
console.log(table(['', 'median', '90th percentile', 'x node', 'budget'], rows))
if (rows.some((row) => row.at(-1)!.endsWith('OVER'))) process.exitCode = 1
service.close()

async function untilEnd(args: string[]): Promise<number> {
  const started = performance.now()
  await waitForExit(spawn(process.execPath, args, { env, stdio: 'ignore' }))
  return performance.now() - started
}

async function untilConnection(): Promise<number> {
  const connected = service.nextConnection()
  const started = performance.now()
  const ended = waitForExit(spawn(process.execPath, [clientPath, 'session', 'ls'], { env, stdio: 'ignore' }))
  const ms = (await connected) - started
  await ended
  return ms
}

async function untilAnswer(): Promise<number> {
  const started = performance.now()
  const child = spawn(process.execPath, [clientPath, 'mcp', 'serve'], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {} })}\n`)
  await new Promise((resolve) => child.stdout.once('data', resolve))
  const ms = performance.now() - started
  child.stdin.end()
  await waitForExit(child)
  return ms
}

async function untilFrame(): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>()
  let shown = ''
  const started = performance.now()
  const terminal = openTerminal([process.execPath, clientPath], env, (chunk) => {
    shown += chunk
    // Ignores earlier output, which only sets up the terminal.
    if (/\S/.test(stripVTControlCharacters(shown))) resolve(performance.now() - started)
  })
  const ms = await promise
  terminal.type('q')
  await terminal.ended
  return ms
}

async function waitForExit(child: ChildProcess): Promise<void> {
  const code = await new Promise((resolve) => child.once('close', resolve))
  if (code !== 0) throw new Error(`${child.spawnargs.join(' ')} ended with ${code}`)
}

async function startService() {
  const page = { data: [], next_cursor: null }
  const result = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    serverInfo: { name: 'bench', version: '1' },
  }
  let connected = (_: number) => {}
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const answer = body === '' ? page : { jsonrpc: '2.0', id: JSON.parse(body).id, result }
    response.setHeader('content-type', 'application/json').end(JSON.stringify(answer))
  })
  server.on('connection', () => connected(performance.now()))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    nextConnection: () => new Promise<number>((resolve) => (connected = resolve)),
    close: () => server.close(),
  }
}
