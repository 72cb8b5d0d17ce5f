/** The driver contract for connections to a pod's ports. */
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Driver, type Pod, PodGone, PortRefused, type Process } from '../../../workers/drivers/driver.ts'
import { echoOn, echoOnce, untilListening } from '../../support/listeners.ts'
import { memoryKept } from '../../support/memory.ts'
import { run, shell } from '../processes.ts'
import type { Contract } from './parts.ts'

const port = 3000
/** The listener on this port accepts one connection. */
const portOfOne = 3001

export function describePorts(contract: Contract): void {
  describe('ports', () => {
    let driver: Driver
    let pod: Pod
    let listener: Process
    const connect = () => driver.connect(pod, port)
    const awaitListener = async (at: number) =>
      expect(await run(driver, pod, shell(untilListening(at)))).toMatchObject({ stdout: 'listening\n' })

    beforeAll(async () => {
      ;({ driver, pod } = contract.opened())
      listener = await driver.start(pod, shell(echoOn(port)))
      await awaitListener(port)
    })
    afterAll(() => listener?.close())

    test('ports transfer bytes in both directions over several concurrent connections', async () => {
      const echoed = async () => {
        const bytes = randomBytes(700_000)
        const stream = await connect()
        stream.write(bytes)
        expect((await read(stream, bytes.length)).equals(bytes)).toBe(true)
        stream.destroy()
      }
      await Promise.all(Array.from({ length: 4 }, echoed))
    })

    test('a port connection ends after the last byte when the listener closes it', async () => {
      const echo = await driver.start(pod, shell(echoOnce(portOfOne, 'bye quit'.length)))
      await awaitListener(portOfOne)
      const stream = await driver.connect(pod, portOfOne)
      stream.write('bye quit')
      expect(String(await buffer(stream))).toBe('bye quit')
      stream.write('too late')
      stream.destroy()
      echo.close()
    })

    test('a driver rejects a connection to a port without a listener', async () => {
      const refused = driver.connect(pod, 3999).then(async (stream) => await buffer(stream))
      await expect(refused).rejects.toBeInstanceOf(PortRefused)
    })

    test('a driver rejects a connection to a port of a nonexistent pod', async () => {
      await expect(driver.connect({ name: `none-${randomUUID()}` }, port)).rejects.toBeInstanceOf(PodGone)
    })

    test.runIf(contract.isWhole)(
      'a port connection blocks a writer that does not read the echoed bytes, and loses no bytes',
      async () => {
        const stream = await connect()
        const chunk = Buffer.alloc(1024 * 1024, 'x')
        let accepted = 0
        // Kernel buffers on the way to a cluster may hold more than a hundred chunks.
        const most = 1024 * chunk.length
        const write = (): void => {
          stream.write(chunk, (error) => {
            if (error || stream.writableEnded) return
            accepted += chunk.length
            if (accepted < most) write()
          })
        }
        const before = memoryKept()
        write()
        // The count stops changing when all buffers are full.
        for (let last = -1; last !== accepted; await sleep(1_000)) last = accepted
        expect(accepted).toBeLessThan(most)
        expect(memoryKept() - before).toBeLessThan(32 * 1024 * 1024)
        expect((await read(stream, accepted)).every((byte) => byte === 120)).toBe(true)
        stream.destroy()
      },
    )

    test('port connections can be half-closed if the driver supports it', async () => {
      if (driver.kind === 'kubernetes') return
      const stream = await connect()
      stream.end('last words')
      expect(String(await buffer(stream))).toBe('last words')
    })
  })
}

async function read(stream: Duplex, length: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  for (let left = length; left > 0; ) {
    const chunk = stream.read(Math.min(left, stream.readableLength) || undefined) as Buffer | null
    if (chunk) {
      chunks.push(chunk)
      left -= chunk.length
    } else await once(stream, 'readable')
  }
  return Buffer.concat(chunks)
}
