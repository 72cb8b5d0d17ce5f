import { readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startWorld } from '../world/index.ts'

/** A wire to the cluster that can be cut: what comes in on its port goes to the real API server. */
async function startWire(port: number) {
  const sockets = new Set<Socket>()
  let isCut = true
  const server = createServer((near) => {
    if (isCut) return near.destroy()
    const far = connect(port, '127.0.0.1')
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    mend() {
      isCut = false
    },
    cut() {
      isCut = true
      for (const socket of sockets) socket.destroy()
    },
    close: () => server.close(),
  }
}

describe.skipIf(!process.env.KUBECONFIG)('a cluster that is away', () => {
  test('at the start of a worker, and later, is said by /readyz and by 503, and things go on when it is back', async () => {
    await using world = await startWorld({ driver: 'kubernetes', workers: 0 })
    const { KUBECONFIG: path } = world.cluster!.env
    const kubeconfig = readFileSync(path!, 'utf8')
    const port = Number(/https:\/\/127\.0\.0\.1:(\d+)/.exec(kubeconfig)?.[1])
    const wire = await startWire(port)
    const cuttable = join(world.folder, 'cuttable')
    writeFileSync(cuttable, kubeconfig.replace(`127.0.0.1:${port}`, `127.0.0.1:${wire.port}`), {
      mode: 0o600,
    })
    const alice = await world.account()
    const ready = async () => {
      const response = await fetch(`${world.apis[0]!.internalUrl}/readyz`)
      const { parts } = (await response.json()) as { parts: Record<string, string> }
      return { ...parts, status: response.status, cluster: parts.cluster }
    }

    await world.startWorker({ KUBECONFIG: cuttable })
    await world.eventually(async () => /cannot be reached/.test((await ready()).cluster ?? ''), 15_000)
    expect(await ready()).toMatchObject({ status: 503, postgres: 'ok', redis: 'ok', workers: 'ok' })
    await expect(alice.call('createSandbox')).rejects.toMatchObject({ status: 503, code: 'unavailable' })

    wire.mend()
    await world.eventually(async () => (await ready()).status === 200, 15_000)
    // The API looks at what workers say of themselves twice a second.
    const created = await world.eventually(() => alice.call('createSandbox'), 15_000)
    expect(created.status).toBe(201)
    const params = { id: created.body.id }

    wire.cut()
    await world.eventually(async () => (await ready()).status === 503, 15_000)
    const refusal = await alice
      .call('execCommand', { params, body: { command: ['true'] } })
      .catch((error) => error)
    expect(refusal).toMatchObject({ status: 503, code: 'unavailable' })
    expect(refusal.retryAfter).toBeGreaterThan(0)
    // What needs no cluster goes on.
    expect((await alice.call('getSandbox', { params })).body.state).toBe('active')

    wire.mend()
    await world.eventually(async () => (await ready()).status === 200, 15_000)
    const again = await alice.call('execCommand', { params, body: { command: ['echo', 'back'] } })
    expect(again.body.stdout).toBe('back\n')
    wire.close()
  }, 180_000)
})
