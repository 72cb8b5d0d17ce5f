import { randomBytes } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { createWebSocketStream } from 'ws'
import { endpoints } from '../../shared/contract/index.ts'
import { limits } from '../../shared/contract/limits.ts'
import { type Account, pathOf } from '../support/account.ts'
import { describeOnBothDrivers } from '../support/drivers.ts'
import type { World } from '../support/index.ts'
import { echoOn, untilListening } from '../support/listeners.ts'
import { peakMemory } from '../support/memory.ts'
import { headOf, openRaw } from '../support/raw.ts'
import { shareSandbox } from '../support/shared.ts'
import { newWebSocket, untilOpen } from '../support/web-socket.ts'

const port = 3000

describeOnBothDrivers('sandbox ports', (driver) => {
  const { world, alice, params, sh } = shareSandbox({ driver })
  const open = (to = port, as: Account = alice, id = params.id) => connect(world, as, id, to)

  const listen = async (id: string) => {
    const request = { command: echoOn(port), background: true }
    await alice.call('execCommand', { params: { id }, body: request })
    const { body } = await alice.call('execCommand', {
      params: { id },
      body: { command: untilListening(port) },
    })
    expect(body.stdout).toBe('listening\n')
  }
  beforeAll(() => listen(params.id))

  test('bytes reach a port unchanged over several concurrent connections', async () => {
    await Promise.all(
      Array.from({ length: 5 }, async () => {
        const { socket } = await open()
        const stream = createWebSocketStream(socket)
        const bytes = randomBytes(1_000_000)
        for (let at = 0; at < bytes.length; at += limits.messageBytes)
          stream.write(bytes.subarray(at, at + limits.messageBytes))
        const back: Buffer[] = []
        let length = 0
        for await (const chunk of stream as AsyncIterable<Buffer>) {
          back.push(chunk)
          length += chunk.length
          if (length >= bytes.length) break
        }
        expect(Buffer.concat(back).equals(bytes)).toBe(true)
      }),
    )
  })

  test('closes a port connection when the program in the sandbox closes it, or if no program listens on the port', async () => {
    const line = await open()
    line.socket.send(Buffer.from('bye quit'))
    expect(await line.closed).toEqual([1000, 'the listener closed the connection'])
    expect(line.received()).toBe('bye quit')
    const nobody = await open(3999)
    expect(await nobody.closed).toEqual([4001, 'no process is listening on port 3999 in the sandbox'])
  })

  test('a rejected port connection receives a problem document', async () => {
    const bob = await world.account()
    await expect(open(port, bob)).rejects.toMatchObject({ status: 404, code: 'not_found' })
    await expect(open(port, alice.with({ key: 'nonsense' }))).rejects.toMatchObject({ status: 401 })
    await expect(open(65_536)).rejects.toMatchObject({ status: 404, code: 'not_found' })
    await expect(alice.open('connectPort', { params: { ...params, port } })).rejects.toMatchObject({
      status: 400,
      code: 'invalid_request',
    })
  })

  test('closes a port connection when its API key is revoked or its sandbox ends', async () => {
    const other = await alice.withNewKey()
    const line = await open(port, other)
    await alice.call('revokeApiKey', { params: { key_id: other.keyId } })
    expect(await line.closed).toEqual([1006, ''])
    await expect(open(port, other)).rejects.toMatchObject({ status: 401 })

    const { id } = (await alice.call('createSandbox')).body
    await listen(id)
    const last = await open(port, alice, id)
    last.socket.send('hello')
    await alice.call('destroySandbox', { params: { id } })
    // Either exit may be reported first: the listener's or the sandbox's.
    expect([1000, 1011]).toContain((await last.closed)[0])
    await expect(open(port, alice, id)).rejects.toMatchObject({ status: 410, code: 'sandbox_destroyed' })
  })

  if (driver === 'kubernetes') return

  test('supports half-closed port connections', async () => {
    const line = await open()
    line.socket.send(Buffer.from('last words'))
    line.socket.send(JSON.stringify({ type: 'eof' }))
    expect((await line.closed)[0]).toBe(1000)
    expect(line.received()).toBe('last words')
  })

  test('a port connection applies backpressure while the program on the port is not reading', async () => {
    const listener = await sh(
      "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(LocalPort => 3001, Listen => 1); $c = $s->accept; sleep' " +
        '>/dev/null 2>&1 & echo $!',
    )
    await sh(untilListening(3001))
    const { socket, closed } = await open(3001)
    const processes = [...world.apis, ...world.workers]
    const before = await peakMemory(processes, async () => {})
    const after = await peakMemory(processes, async () => {
      const chunk = Buffer.alloc(limits.messageBytes)
      let sent = 0
      for (let index = 0; index < 1_600; index++) socket.send(chunk, () => sent++)
      // Sending stops once all buffers are full.
      for (let last = -1; last !== sent; await new Promise((resolve) => setTimeout(resolve, 1_000)))
        last = sent
      expect(sent).toBeLessThan(800)
    })
    for (const [index, bytes] of after.entries()) expect(bytes - before[index]!).toBeLessThan(40_000_000)
    await sh(`kill ${listener.stdout}`)
    expect((await closed)[0]).toBe(1011)
  })

  test('closes a port connection after an invalid handshake', async () => {
    const head = headOf('GET', pathOf(endpoints.connectPort, { params: { ...params, port } }), {
      authorization: `Bearer ${alice.key}`,
      ...{ connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': 1 },
      'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    })
    for (let count = 0; count <= limits.connections; count++) {
      const connection = openRaw(world.url(), head)
      await connection.closed
      expect(connection.text()).toMatch(/^HTTP\/1.1 [45]/)
      connection.socket.destroy()
    }
    const line = await open()
    line.socket.terminate()
  })

  test('limits the number of concurrent port connections', async () => {
    // Connections of earlier tests may still count briefly.
    const opened = () => world.eventually(() => open().catch(() => undefined), 15_000)
    const lines = await Promise.all(Array.from({ length: limits.connections }, opened))
    await expect(open()).rejects.toMatchObject({ status: 429, code: 'rate_limited' })
    for (const { socket } of lines) socket.terminate()
    ;(await opened()).socket.terminate()
  })
})

async function connect(world: World, account: Account, id: string, to: number) {
  const socket = newWebSocket(world, account, `/v1/sandboxes/${id}/ports/${to}`)
  const received: Buffer[] = []
  socket.on('message', (data: Buffer) => received.push(data))
  const closed = new Promise<[code: number, reason: string]>((resolve) =>
    socket.on('close', (code, reason) => resolve([code, String(reason)])),
  )
  await untilOpen(socket)
  return { socket, closed, received: () => Buffer.concat(received).toString() }
}
