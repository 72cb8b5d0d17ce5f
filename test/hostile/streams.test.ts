/** Streamed responses and uploads are counted, limited per account, and closed when a client stalls. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { allowLongStall, portsOf, readSendQueues, StalledClients } from '../../api/http/stalled-clients.ts'
import { endpoints } from '../../shared/contract/index.ts'
import { limits } from '../../shared/contract/limits.ts'
import type { MemoryKind } from '../../shared/platform/memory-budget.ts'
import { pathOf } from '../support/account.ts'
import { describeOnBothDrivers } from '../support/drivers.ts'
import { readEvents } from '../support/events.ts'
import type { World } from '../support/index.ts'
import { sumUp } from '../support/metrics.ts'
import { headOf, openRaw, type RawConnection } from '../support/raw.ts'
import { shareSandbox } from '../support/shared.ts'

const mebibyte = 1024 * 1024
/** Size of the file, which exceeds all kernel buffers between worker and client. */
const fileBytes = 32 * mebibyte
const batchSize = 8
const streamBytes = 128 * 1024

/** Bytes reserved in workers and APIs. */
async function heldBy({ workers, apis }: Pick<World, 'workers' | 'apis'>, kind: MemoryKind): Promise<number> {
  const urls = [...workers, ...apis].map(({ internalUrl }) => internalUrl)
  return (await sumUp(urls, 'sandlot_held_bytes', 'kind'))[kind]!
}

/** Returns a list whose connections are closed after each test of the suite. */
function closedAfterEach(): RawConnection[] {
  const opened: RawConnection[] = []
  afterEach(() => {
    for (const { socket } of opened.splice(0)) socket.destroy()
  })
  return opened
}

describeOnBothDrivers('streams', (driver) => {
  describe('that stay open', () => {
    const { world, alice, params, sh } = shareSandbox({ driver, env: { CLIENT_STALL_SECONDS: '3600' } })

    const opened = closedAfterEach()
    const heldIn = (kind: MemoryKind) => heldBy(world, kind)
    const pathTo = (query: object) => pathOf(endpoints.readRawFile, { params, query: query as never })

    /** Opens a reader that stops after the response headers. */
    const openStalled = async (path: string): Promise<RawConnection> => {
      const head = headOf('GET', path, { authorization: `Bearer ${alice.key}` })
      const reader = openRaw(world.url(), head)
      opened.push(reader)
      reader.socket.once('data', () => reader.socket.pause())
      await world.eventually(() => reader.text() !== '', 20_000)
      return reader
    }
    const statusOf = (reader: RawConnection) => reader.text().slice(9, 12)

    test("an account's 65th stream is rejected until one of the open streams is closed", async () => {
      await sh(`yes 'a line of the file' | head -c ${fileBytes} > big`)
      const files = [{}, { start_line: 2 }].map((lines) => pathTo({ path: 'big', ...lines }))
      const readers = await Promise.all(files.map(openStalled))
      // A command allows eight readers, and prints nothing here.
      while (readers.length < limits.streams) {
        const body = { command: 'sleep 600', background: true }
        const { id: exec_id } = (await alice.call('execCommand', { params, body })).body
        const events = pathOf(endpoints.streamExec, { params: { ...params, exec_id } })
        const count = Math.min(batchSize, limits.streams - readers.length)
        readers.push(...(await Promise.all(Array.from({ length: count }, () => openStalled(events)))))
      }
      expect(readers.map(statusOf)).toEqual(readers.map(() => '200'))
      expect(await heldIn('streams')).toBeGreaterThanOrEqual(2 * limits.streams * streamBytes)

      const refused = await openStalled(files[0]!)
      expect(statusOf(refused)).toBe('429')
      expect(refused.text()).toContain('has 64 streamed responses open')
      expect(refused.text()).toContain('then try again')
      await expect(
        alice.open('execCommand', {
          params,
          headers: { accept: 'text/event-stream' },
          body: { command: 'echo refused > ran' },
        }),
      ).rejects.toMatchObject({ status: 429, code: 'rate_limited' })
      // JSON responses do not count as streams, and other accounts have separate limits.
      expect(await sh('cat ran')).toMatchObject({ exit_code: 1 })

      for (const { socket } of readers.slice(1)) socket.destroy()
      await world.eventually(async () => statusOf(await openStalled(files[0]!)) === '200', 20_000)
      readers[0]!.socket.destroy()
    })

    test('streams release their memory when they end', async () => {
      await world.eventually(async () => (await heldIn('streams')) === 0, 20_000)
      await sh('head -c 1000000 /dev/zero > small')
      const answer = await alice.open('readRawFile', { params, query: { path: 'small' } })
      expect((await answer.bytes()).length).toBe(1_000_000)
      const events = await alice.open('execCommand', {
        params,
        headers: { accept: 'text/event-stream' },
        body: { command: 'echo done' },
      })
      await readEvents(events).rest()
      for (const kind of ['streams', 'uploads', 'requests'] as const)
        await world.eventually(async () => (await heldIn(kind)) === 0, 20_000)
    })

    test("an account's 65th concurrent upload is rejected", async () => {
      const path = pathOf(endpoints.writeRawFile, { params, query: { path: 'never' } })
      const head = headOf('PUT', path, {
        authorization: `Bearer ${alice.key}`,
        'content-length': 1_000,
        'content-type': 'application/octet-stream',
      })
      const open = () => {
        const upload = openRaw(world.url(), head)
        opened.push(upload)
        return upload
      }
      const uploads: RawConnection[] = []
      while (uploads.length < limits.streams) {
        uploads.push(...Array.from({ length: batchSize }, open))
        // Counted in both the API and the worker.
        const held = 2 * uploads.length * streamBytes
        await world.eventually(async () => (await heldIn('uploads')) === held, 20_000)
      }
      const refused = open()
      await world.eventually(() => refused.text().includes('has 64 uploads open'), 20_000)
      expect(statusOf(refused)).toBe('429')
      for (const { socket } of uploads) socket.destroy()
      await world.eventually(async () => (await heldIn('uploads')) === 0, 20_000)
    })
  })

  describe('whose clients stall', () => {
    const { world, alice, params, sh } = shareSandbox({ driver, env: { CLIENT_STALL_SECONDS: '3' } })

    const opened = closedAfterEach()
    const heldIn = (kind: MemoryKind) => heldBy(world, kind)
    const openStalled = (path: string, method = 'GET', more = {}, body = '') => {
      const head = headOf(method, path, { authorization: `Bearer ${alice.key}`, ...more })
      const reader = openRaw(world.url(), head + body)
      opened.push(reader)
      reader.socket.once('data', () => reader.socket.pause())
      return reader
    }

    test.each([
      ['a file', {}],
      ['a range of a file', {}, { range: `bytes=1-${fileBytes}` }],
      ['a file from a given line', { start_line: 2 }],
    ])(
      'a stalled reader of %s is disconnected and its memory released',
      async (_, lines, headers: Record<string, string> = {}) => {
        await sh(`[ -e big ] || yes 'a line of the file' | head -c ${fileBytes} > big`)
        const path = pathOf(endpoints.readRawFile, { params, query: { path: 'big', ...lines } as never })
        const reader = openStalled(path, 'GET', { ...headers })
        await world.eventually(async () => (await heldIn('streams')) > 0, 20_000)
        await world.eventually(async () => (await heldIn('streams')) === 0, 30_000)
        reader.socket.resume()
        await reader.closed
        expect(reader.text()).toMatch(/^HTTP\/1\.1 20[06] /)
        expect(reader.text().length).toBeLessThan(fileBytes)
      },
    )

    test('a stalled reader of events and a reader of an idle command both stay connected', async () => {
      const idle = await alice.open('execCommand', {
        params,
        headers: { accept: 'text/event-stream' },
        body: { command: 'until [ -e go ]; do sleep 0.05; done; echo gone' },
      })
      const events = readEvents(idle)
      await events.until('start')
      const body = JSON.stringify({ command: 'yes', grace_ms: 0 })
      const json = {
        accept: 'text/event-stream',
        'content-type': 'application/json',
        'content-length': body.length,
      }
      const idleBytes = await heldIn('streams')
      const reader = openStalled(pathOf(endpoints.execCommand, { params }), 'POST', json, body)
      // API and worker each reserve one more stream's buffers, and the RPC arguments.
      await world.eventually(async () => (await heldIn('streams')) >= idleBytes + 2 * streamBytes, 20_000)
      const eventBytes = await heldIn('streams')
      // A download that stalls later is closed before the others.
      await sh(`[ -e big ] || yes 'a line of the file' | head -c ${fileBytes} > big`)
      const download = openStalled(pathOf(endpoints.readRawFile, { params, query: { path: 'big' } as never }))
      await world.eventually(async () => (await heldIn('streams')) > eventBytes, 20_000)
      await world.eventually(async () => (await heldIn('streams')) === eventBytes, 60_000)
      download.socket.resume()
      await download.closed
      reader.socket.destroy()
      await world.eventually(async () => (await heldIn('streams')) === idleBytes, 60_000)
      await sh('touch go')
      expect(await events.until('stdout')).toMatchObject({ data: { text: 'gone\n' } })
      await events.rest()
    })
  })
})

describe('stalled clients', () => {
  /** The server writes endlessly, and the client stops after the first bytes. */
  async function openEndless({ isEvents = false } = {}) {
    const server = createServer((_, response) => {
      if (isEvents) allowLongStall(response)
      const write = () => {
        while (response.write(Buffer.alloc(64 * 1024)));
      }
      response.on('drain', write)
      write()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const stalled = new StalledClients(pino({ level: 'silent' }))
    const connected = once(server, 'connection') as Promise<[Socket]>
    const { socket: client } = openRaw(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const [socket] = await connected
    stalled.watch(socket)
    onTestFinished(() => {
      client.destroy()
      server.close()
      server.closeAllConnections()
    })
    client.removeAllListeners('data').pause().write(headOf('GET', '/'))
    // The kernel buffers are full.
    let written = -1
    while (socket.bytesWritten !== written || written < mebibyte) {
      written = socket.bytesWritten
      await sleep(100)
    }
    return { stalled, client, socket }
  }

  const queueOf = async (socket: Socket) => {
    const ports = portsOf(socket)
    return (await readSendQueues(new Set([ports]))).get(ports)
  }

  /** Reads until the server's kernel has sent more. */
  async function takeLittle(client: Socket, socket: Socket) {
    const before = await queueOf(socket)
    while ((await queueOf(socket)) === before) {
      if (client.read(Math.min(64 * 1024, Math.max(1, client.readableLength)))) continue
      await Promise.race([once(client, 'readable'), once(client, 'end')])
      if (client.readableEnded) throw new Error('the client was closed')
    }
  }

  test('a client is disconnected after six checks without progress', async () => {
    const { stalled, socket } = await openEndless()
    let checks = 0
    for (; checks < 100 && !socket.destroyed; checks++) await stalled.check()
    expect(socket.destroyed).toBe(true)
    // The first check has nothing to compare with.
    expect(checks).toBeGreaterThanOrEqual(7)
  })

  test('a client of an event stream is disconnected only after 360 checks without progress', async () => {
    const { stalled, socket } = await openEndless({ isEvents: true })
    let checks = 0
    const written = new Map<number, number>()
    for (; checks < 1_000 && !socket.destroyed; checks++) {
      await stalled.check()
      const bytes = socket.bytesWritten - socket.writableLength
      if (!written.has(bytes)) written.set(bytes, checks)
    }
    const progress = [...written].map(([bytes, check]) => `${bytes} bytes at check ${check}`)
    expect(socket.destroyed, `written: ${progress.join(', ')}`).toBe(true)
    expect(checks).toBeGreaterThanOrEqual(361)
  })

  test('a client that reads slowly stays connected', async () => {
    const { stalled, client, socket } = await openEndless()
    for (let rounds = 0; rounds < 15; rounds++) {
      await takeLittle(client, socket)
      await stalled.check()
      await stalled.check()
    }
    expect(socket.destroyed).toBe(false)
  })

  test('a client that has no pending bytes stays connected', async () => {
    const server = createServer((_, response) => void response.write('once'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const stalled = new StalledClients(pino({ level: 'silent' }))
    server.on('connection', (socket) => stalled.watch(socket))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const client = openRaw(url, headOf('GET', '/'))
    onTestFinished(() => {
      client.socket.destroy()
      server.close()
      server.closeAllConnections()
    })
    await once(client.socket, 'data')
    for (let checks = 0; checks < 20; checks++) await stalled.check()
    expect(await new Promise((resolve) => server.getConnections((_, count) => resolve(count)))).toBe(1)
  })
})
