/** Floods of WebSocket frames, with a neighbour on the same worker. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { endpoints } from '../../shared/contract/index.ts'
import { pathOf } from '../support/account.ts'
import { frame, openRawWebSocket, repeat } from '../support/frames.ts'
import { noteMeasured } from '../support/measured.ts'
import { sumUp } from '../support/metrics.ts'
import { shareWorld } from '../support/shared.ts'
import { type Tenant, withNeighbour } from './neighbour.ts'

const world = shareWorld()

const floodMs = 6_000
const kibibyte = 1024
const mebibyte = 1024 * kibibyte
/** Limit for a health check and a neighbour's command. */
const longestMs = 1_000
/**
 * Limits for the neighbour's commands and for memory. An account may use 64 MiB per process, and V8 grows the
 * young generation by 32 MiB under load.
 */
const bounds = { floorMs: longestMs, growthMiB: 64 + 32 }

/** Listens on port 3000, optionally without reading. */
const listener = (reads: boolean) =>
  `exec perl -MIO::Socket::INET -e '$SIG{CHLD} = "IGNORE"; $s = IO::Socket::INET->new(LocalPort => 3000, ` +
  `Listen => 128, ReuseAddr => 1) or die; while ($c = $s->accept) { next if fork; ` +
  `${reads ? '1 while sysread($c, $b, 65536); ' : ''}sleep 600 }'`

/** Path of a new WebSocket to a port or a command. */
async function targetOf({ account, params, sh }: Tenant, kind: 'port' | 'unread port' | 'attach') {
  const command = kind === 'attach' ? 'cat >/dev/null' : listener(kind === 'port')
  const { body } = await account.call('execCommand', { params, body: { command, background: true } })
  if (kind === 'attach') return pathOf(endpoints.attachExec, { params: { ...params, exec_id: body.id } })
  await sh('until grep -qi ":0BB8 0*:0000 0A" /proc/net/tcp; do sleep 0.05; done')
  return pathOf(endpoints.connectPort, { params: { ...params, port: 3000 } })
}

interface Flood {
  on: 'port' | 'unread port' | 'attach'
  sockets: number
  /** Sent once. Then `again` is sent repeatedly. */
  once?: Buffer
  again: Buffer
}

/** Writes as fast as possible, and reopens closed sockets. */
async function flood(hostile: Tenant, { on, sockets, once, again }: Flood) {
  const path = await targetOf(hostile, on)
  const until = performance.now() + floodMs
  let [sent, closed, refused] = [0, 0, 0]
  const run = async () => {
    while (performance.now() < until) {
      const opened = await openRawWebSocket(world.url(), path, hostile.account.key).catch(() => undefined)
      if (!opened) {
        refused++
        await sleep(500)
        continue
      }
      const { socket, closed: isClosed } = opened
      const ended = isClosed.then(() => 'closed')
      if (once) socket.write(once)
      while (performance.now() < until && socket.writable && !socket.readableEnded) {
        sent += again.length
        if (again.length > 0 && socket.write(again)) continue
        const drained = new Promise((resolve) => socket.once('drain', resolve))
        await Promise.race([again.length > 0 ? drained : ended, ended, sleep(until - performance.now())])
      }
      if (performance.now() < until) closed++
      socket.destroy()
    }
  }
  await Promise.all(Array.from({ length: sockets }, run))
  return { sent, closed, refused }
}

/** Measures the slowest health check and the maximum number of reserved bytes. */
async function watched<T>(work: () => Promise<T>) {
  let isOver = false
  const result = work().finally(() => {
    isOver = true
  })
  let [slowestMs, maxHeld] = [0, 0]
  const urls = [world.apis[0]!.internalUrl, world.workers[0]!.internalUrl]
  while (!isOver) {
    for (const url of urls) {
      const started = performance.now()
      expect((await fetch(`${url}/healthz`)).status).toBe(200)
      slowestMs = Math.max(slowestMs, performance.now() - started)
    }
    const sums = await sumUp([urls[1]!], 'sandlot_held_bytes', 'kind')
    maxHeld = Math.max(
      maxHeld,
      Object.values(sums).reduce((all, one) => all + one, 0),
    )
    await sleep(50)
  }
  return { result: await result, slowestMs, maxHeld }
}

const oneByte = repeat(frame('binary', 'x'), mebibyte)
const empty = repeat(frame('binary'), mebibyte)
const pings = repeat(frame('ping'), mebibyte)
const pongs = repeat(frame('pong'), mebibyte)
const text = (bytes: number) => frame('text', JSON.stringify(Array(Math.floor(bytes / 2 - 1)).fill(0)))
const resizes = repeat(frame('text', '{"type":"resize","rows":24,"columns":80}'), mebibyte)
const fragments = repeat(
  Buffer.concat([
    frame('continuation', 'x', { fin: false }),
    repeat(frame('pong', Buffer.alloc(125)), 16 * kibibyte),
  ]),
  mebibyte,
)
const unfinished = (bytes: number) => frame('binary', Buffer.alloc(bytes - 1), { announced: bytes })

const floods: [name: string, flood: Flood][] = [
  ['one-byte frames to a port', { on: 'port', sockets: 8, again: oneByte }],
  ['one-byte frames to a port that does not read', { on: 'unread port', sockets: 60, again: oneByte }],
  ['empty frames to a port', { on: 'port', sockets: 8, again: empty }],
  ['pings to a port', { on: 'port', sockets: 8, again: pings }],
  ['pongs to a port', { on: 'port', sockets: 8, again: pongs }],
  ['text frames above the limit to a port', { on: 'port', sockets: 8, again: text(mebibyte - 10) }],
  ['64 KiB text frames to a port', { on: 'port', sockets: 8, again: text(64 * kibibyte) }],
  ['one-byte frames to a command', { on: 'attach', sockets: 8, again: oneByte }],
  ['pongs to a command', { on: 'attach', sockets: 8, again: pongs }],
  ['resizes of a command', { on: 'attach', sockets: 8, again: resizes }],
  [
    'one-byte fragments with pongs between',
    { on: 'port', sockets: 4, once: frame('binary', 'x', { fin: false }), again: fragments },
  ],
  [
    'unfinished frames of 64 KiB',
    { on: 'port', sockets: 60, once: unfinished(64 * kibibyte), again: Buffer.alloc(0) },
  ],
]

test.each(floods)("a flood of %s does not slow down other accounts' requests", async (name, each) => {
  const { slowestMs, maxHeld, result } = await withNeighbour(
    world,
    (hostile) => watched(() => flood(hostile, each)),
    bounds,
  )
  console.info(
    `${name}: health check at most ${slowestMs.toFixed(0)} ms, held ${(maxHeld / mebibyte).toFixed(1)} MiB; ` +
      `${(result.sent / mebibyte).toFixed(1)} MiB sent, ${result.closed} closed, ${result.refused} refused`,
  )
  noteMeasured(slowestMs, longestMs)
  expect(slowestMs).toBeLessThan(longestMs)
  expect(maxHeld).toBeLessThanOrEqual(64 * mebibyte)
})
