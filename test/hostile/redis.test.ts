/** An attacker who controls Redis or the connection to a worker can only deny service. */
import { request } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { Queue } from 'bullmq'
import { beforeAll, expect, test } from 'vitest'
import { newWorkerId } from '../../shared/data/ids.ts'
import { queueName, queuePrefix } from '../../shared/platform/jobs.ts'
import { checkLiveness } from '../../shared/rpc/alive.ts'
import { acceptCallsTo, openCallAgent } from '../../shared/rpc/channel.ts'
import { announceWorker, inOrderFor, listWorkers } from '../../shared/rpc/worker-registry.ts'
import { shareSandbox } from '../support/shared.ts'

const { world, params, exec, sh } = shareSandbox()
const soonMs = 15_000
const canary = 'canary-7f3a'

/** Overwrites the registry every 20 ms. @returns a function that stops the overwriting */
async function keepWriting(write: () => Promise<unknown>) {
  await write()
  const timer = setInterval(() => void write(), 20)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

async function eavesdrop(answer: (socket: Socket, bytes: Buffer) => void = (socket) => socket.destroy()) {
  const heard: Buffer[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      heard.push(bytes)
      answer(socket, bytes)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    heard: () => Buffer.concat(heard),
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

const redisMs = async () => {
  const [seconds, micros] = await world.redis.time()
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
}

const trueEntry = async () => {
  const [entry] = Object.values(await world.redis.hgetall('sandlot:workers'))
  return entry!.slice(entry!.indexOf(' ') + 1)
}

/** Finds a worker id that ranks first for the sandbox. */
const findOwnerId = async (): Promise<string> => {
  const url = ''
  const others = await listWorkers(world)
  const isFirst = (id: string) =>
    inOrderFor(params.id, [...others, { id, url, driverProblem: null }])[0]!.id === id
  while (true) {
    const id = newWorkerId()
    if (isFirst(id)) return id
  }
}

const secretCommand = (line = 'echo $CANARY') => ({ command: line, env: { CANARY: canary }, stdin: canary })

let workerPort: number
beforeAll(() => {
  workerPort = Number(new URL(world.workers[0]!.callsUrl).port)
})

test('no RPCs are sent to a worker without a validly signed registry entry', async () => {
  using spy = await eavesdrop()
  const url = `http://127.0.0.1:${spy.port}`
  const [id, forged] = [newWorkerId(), newWorkerId()]
  const plain = JSON.stringify({ id, url, driverProblem: null, at: Date.now() })
  // A valid signature from an existing worker, combined with a different entry.
  const [signature] = (await trueEntry()).split(' ')
  using _ = await keepWriting(async () => {
    const now = await redisMs()
    await world.redis.hset('sandlot:workers', id, `${now} ${plain}`)
    await world.redis.hset('sandlot:workers', forged, `${now} ${signature} ${plain.replace(id, forged)}`)
  })
  await world.eventually(async () => (await listWorkers(world)).length === 1, soonMs)
  const results = await Promise.all(Array.from({ length: 10 }, () => exec(secretCommand())))
  for (const result of results) expect(result).toMatchObject({ status: 'exited', stdout: `${canary}\n` })
  expect(spy.heard().toString('latin1')).toBe('')
  const warnings = () =>
    world.apis[0]!.lines.filter(({ msg }) => msg.startsWith('ignoring a registry entry in Redis'))
  await world.eventually(async () => {
    await exec({ command: 'true' })
    return warnings().length > 0
  }, soonMs)
  expect(warnings()).toHaveLength(1)
  await world.redis.hdel('sandlot:workers', id, forged)
})

test('no RPC reaches an attacker who replays a registry entry', async () => {
  using spy = await eavesdrop()
  const { rpcKeys } = world.settings
  // An attacker at a worker's address has a valid entry, but not the key.
  const id = await findOwnerId()
  const tls = createTlsServer(acceptCallsTo(id, ['another key']), (socket) =>
    socket.on('data', () => expect.unreachable()),
  )
  let refused = 0
  tls.on('tlsClientError', () => refused++)
  await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve))
  const ports = [spy.port, (tls.address() as AddressInfo).port]
  let turn = 0
  {
    using _ = await keepWriting(async () => {
      const port = ports[Math.floor(turn++ / 50) % 2]
      const entry = { id, url: `https://127.0.0.1:${port}`, driverProblem: null }
      await announceWorker(world.redis, rpcKeys, entry)
    })
    await world.eventually(async () => {
      await exec({ command: 'true' })
      return spy.heard().length > 0 && refused > 0
    }, soonMs)
    const results = await Promise.all(Array.from({ length: 10 }, () => exec(secretCommand())))
    for (const result of results) expect(result).toMatchObject({ status: 'exited', stdout: `${canary}\n` })
    expect(spy.heard().includes(canary)).toBe(false)
  }
  tls.close()
  await world.redis.hdel('sandlot:workers', id)

  const old = await trueEntry()
  const inTwoMinutes = Date.now() + 120_000
  const { now } = Date
  try {
    Date.now = () => inTwoMinutes
    await world.redis.hset('sandlot:workers', 'old', `${await redisMs()} ${old}`)
    await expect(listWorkers(world)).resolves.toEqual([])
  } finally {
    Date.now = now
    await world.redis.hdel('sandlot:workers', 'old')
  }
})

test('an RPC cannot be read, changed or replayed in transit', async () => {
  let mode: 'pass' | 'alter' = 'pass'
  const ways = new Map<Socket, Socket>()
  using wire = await eavesdrop((socket, bytes) => {
    const worker = ways.get(socket) ?? connect(workerPort, '127.0.0.1')
    if (!ways.has(socket)) worker.on('error', () => socket.destroy()).pipe(socket)
    ways.set(socket, worker)
    // TLS application data starts with byte 23. Handshake records do not.
    if (mode === 'alter' && bytes[0] === 23) bytes[bytes.length - 1]! ^= 1
    worker.write(bytes)
  })
  const [worker] = await listWorkers(world)
  const url = `https://127.0.0.1:${wire.port}`
  {
    using _ = await keepWriting(() =>
      announceWorker(world.redis, world.settings.rpcKeys, { id: worker!.id, url, driverProblem: null }),
    )
    await world.eventually(async () => {
      await exec({ command: 'true' })
      return wire.heard().length > 0
    }, soonMs)
    const before = wire.heard().length
    await exec(secretCommand('echo $CANARY >> ran'))
    await world.eventually(() => wire.heard().length > before, soonMs)
    expect(wire.heard().includes(canary)).toBe(false)

    mode = 'alter'
    await exec(secretCommand('echo altered >> ran')).catch(() => {})
  }
  for (const socket of ways.values()) socket.destroy()
  const again = connect(workerPort, '127.0.0.1')
  again.on('error', () => {})
  again.write(wire.heard())
  await new Promise((resolve) => again.on('close', resolve).resume())
  await world.eventually(async () => (await listWorkers(world))[0]?.url === worker!.url, soonMs)
  const ran = await world.eventually(async () => await exec({ command: 'cat ran' }), soonMs)
  expect(ran.stdout).toBe(`${canary}\n`)
})

test("a forged job changes nothing unless the sandbox's database row already requires the change", async () => {
  const jobs = new Queue(queueName, { connection: world.redis as never, prefix: queuePrefix })
  const { id: sandboxId } = params
  const forged = [
    ...['createPod', 'assignPod', 'deletePod', 'expire', 'constructor'].map((name) => ({
      name,
      data: { sandboxId },
    })),
    ...[undefined, null, ['x', 'y'], { sql: 'select 1' }].map((id) => ({
      name: 'deletePod',
      data: { sandboxId: id },
    })),
    { name: 'expire', data: null },
  ]
  await sh('echo still here > kept')
  await jobs.addBulk(forged)
  await world.eventually(async () => {
    const { wait, active } = await jobs.getJobCounts('wait', 'active')
    return wait === 0 && active === 0
  }, soonMs)
  expect((await sh('cat kept')).stdout).toBe('still here\n')
  const rows = await world.db.query('select 1 from sandbox where destroyed_at is null and id = ?', [
    sandboxId,
  ])
  expect(rows).toHaveLength(1)
})

test('a worker rejects an RPC that does not use the RPC key', async () => {
  const { internalUrl, callsUrl } = world.workers[0]!
  const plainCallTo = (url: string) =>
    new Promise((resolve, reject) => {
      const headers = { authorization: 'Bearer x', expect: '100-continue' }
      const call = request(new URL('/calls/exec', url), { method: 'POST', headers })
      call.on('response', (response) => resolve(response.resume().statusCode))
      call.on('error', reject)
      call.end('{}')
    })
  expect(await plainCallTo(internalUrl)).toBe(404)
  await expect(plainCallTo(callsUrl.replace('https', 'http'))).rejects.toThrow()
})

test('the internal port accepts no RPC, even one that uses the RPC key', async () => {
  const { internalUrl, callsUrl } = world.workers[0]!
  const [worker] = await listWorkers(world)
  expect(worker!.url).toBe(callsUrl)
  const ask = (url: string) => checkLiveness({ ...worker!, url }, openCallAgent(), soonMs)
  expect(await ask(callsUrl)).toBe('alive')
  expect(await ask(internalUrl.replace('http', 'https'))).toBe('gone')
})
