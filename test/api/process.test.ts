import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { createServer } from 'node:net'
import { describe, expect, test } from 'vitest'
import { expectDurationBelow } from '../support/eventually.ts'
import { readinessOf } from '../support/http.ts'
import { startWorld, type World } from '../support/index.ts'

/** Starts a process that must fail. Returns the exit code and output. */
async function startDoomed(world: World, env: Record<string, string>, kind: 'api' | 'worker' = 'api') {
  await (kind === 'api' ? world.startApi(env) : world.startWorker(env)).catch(() => {})
  const process = (kind === 'api' ? world.apis : world.workers).at(-1)!
  return { code: await process.ended, words: process.lines.map(({ msg }) => msg).join('\n') }
}

async function getOver(agent: Agent, url: string) {
  const request = get(`${url}/v1/openapi.json`, { agent })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  const { statusCode: status, headers } = response
  return { status, connection: headers.connection, reused: request.reusedSocket }
}

const isRefused = (url: string) => () =>
  fetch(`${url}/v1/openapi.json`).then(
    () => false,
    () => true,
  )
describe('process start', () => {
  test('a process with missing or invalid settings names them and exits with status 2', async () => {
    await using world = await startWorld({ apis: 0, workers: 0 })
    const { code, words } = await startDoomed(world, {
      DATABASE_URL: '',
      JWT_SECRET: 'too-short-a-secret',
      RATE_LOGIN_PER_MINUTE: 'many',
    })
    expect(code).toBe(2)
    for (const name of ['DATABASE_URL', 'JWT_SECRET', 'RATE_LOGIN_PER_MINUTE']) expect(words).toContain(name)
    expect(words).not.toContain('too-short-a-secret')
    expect(words).not.toMatch(/^\s+at /m)
    const proxies = await startDoomed(world, { TRUSTED_PROXIES: '10.0.0.0/8,proxy.example' })
    expect(proxies).toMatchObject({ code: 2, words: expect.stringContaining('TRUSTED_PROXIES') })
  })

  test.each([
    ['api', 'PORT'],
    ['api', 'INTERNAL_PORT'],
    ['worker', 'INTERNAL_PORT'],
    ['worker', 'RPC_PORT'],
  ] as const)(
    'the %s process names the address and exits with status 2 if the port in %s is in use',
    async (kind, name) => {
      await using world = await startWorld({ apis: 0, workers: 0 })
      const other = createServer().listen(0, '127.0.0.1')
      await once(other, 'listening')
      const { port } = other.address() as { port: number }
      const { code, words } = await startDoomed(world, { [name]: String(port) }, kind)
      other.close()
      expect(code).toBe(2)
      expect(words).toContain(`127.0.0.1:${port}`)
      expect(words).toContain(`another process uses this port. Set ${name} to another port.`)
      expect(words).not.toMatch(/^\s+at /m)
    },
  )
})

describe('process shutdown', () => {
  test('a process that is shutting down completes its running requests and refuses new ones', async () => {
    await using world = await startWorld()
    const alice = await world.account()
    const { body } = await alice.call('createSandbox')
    const [api] = world.apis
    const params = { id: body.id }
    const running = alice.call('execCommand', {
      params,
      body: { command: 'touch begun; sleep 2; echo done' },
    })
    await world.eventually(() => alice.call('viewFile', { params, query: { path: 'begun' } }), 5_000)
    api!.signal('SIGTERM')
    await world.eventually(isRefused(api!.url), 1_000)
    expect((await running).body).toMatchObject({ status: 'exited', stdout: 'done\n' })
    expect(await api!.ended).toBe(0)
    await world.startApi()
    expect((await alice.call('getSandbox', { params, api: 1 })).body.state).toBe('active')
  })

  test('during shutdown, a process reports that it is not ready before it closes connections', async () => {
    await using world = await startWorld({ apis: 0, workers: 0 })
    const api = await world.startApi({ SHUTDOWN_DELAY_SECONDS: '600' })
    const process = async () => (await readinessOf(api)).parts.process
    const ask = () => fetch(`${api.url}/v1/openapi.json`)
    expect(await process()).toBe('ok')
    expect((await ask()).headers.get('connection')).toBe('keep-alive')
    api.signal('SIGTERM')
    await world.eventually(async () => (await process()) !== 'ok', 5_000)
    expect(await process()).toBe('draining')
    const answer = await ask()
    expect([answer.status, answer.headers.get('connection')]).toEqual([200, 'close'])
    await api.kill()
  })

  test('during the shutdown delay, a process still serves requests on idle connections', async () => {
    await using world = await startWorld({ apis: 0, workers: 0 })
    const api = await world.startApi({ SHUTDOWN_DELAY_SECONDS: '1' })
    const kept = new Agent({ keepAlive: true })
    expect(await getOver(kept, api.url)).toMatchObject({ status: 200, reused: false })
    api.signal('SIGTERM')
    await world.eventually(isRefused(api.url), 10_000)
    expect(await getOver(kept, api.url)).toMatchObject({ status: 200, reused: true, connection: 'close' })
    expect(await api.ended).toBe(0)
  })

  test('a process that is shutting down does not wait for idle keep-alive connections', async () => {
    await using world = await startWorld({ workers: 0 })
    // `fetch` keeps its connections open.
    await Promise.all(Array.from({ length: 10 }, () => fetch(`${world.url()}/v1/openapi.json`)))
    const start = performance.now()
    await world.apis[0]!.stop()
    expect(await world.apis[0]!.ended).toBe(0)
    expectDurationBelow(performance.now() - start, 3_000)
  })
})
