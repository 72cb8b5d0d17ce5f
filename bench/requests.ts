import { newSandboxId } from '../shared/data/ids.ts'
import { loadFor, openConnection, requestBytes } from './load.ts'
import type { Part, Row } from './part.ts'
import { addressOf, startStack } from './stack.ts'

const inFlight = 32
const rounds = 6
const roundMs = 2_000

export const requests: Part = {
  title: 'Requests with an API key, compared with bare Koa',
  needsCluster: false,
  async measure() {
    await using stack = await startStack({ SANDBOX_DRIVER: 'local' })
    const api = addressOf(stack.apis[0]!)
    const koa = addressOf(await stack.start('bench/bare-koa.ts', ['listening']))
    const { id } = await stack.request('POST', '/v1/sandboxes', {})
    const authorization = `Bearer ${stack.key}`
    const ways = [
      { what: 'bare Koa', url: koa, path: '/', status: 200 },
      { what: 'only the key: `GET /v1/sandboxes/none`', url: api, path: '/v1/sandboxes/none', status: 404 },
      {
        what: 'key and bucket: `GET …/none/files/view`',
        url: api,
        path: '/v1/sandboxes/none/files/view?path=a',
        status: 404,
      },
      {
        what: 'key, bucket, a missing row',
        url: api,
        path: `/v1/sandboxes/${newSandboxId()}/files/view?path=a`,
        status: 404,
      },
      { what: 'key and a row: `GET /v1/sandboxes/:id`', url: api, path: `/v1/sandboxes/${id}`, status: 200 },
      { what: 'key and a list: `GET /v1/sandboxes`', url: api, path: '/v1/sandboxes', status: 200 },
    ]
    const rates = new Map<string, number[]>(ways.map(({ what }) => [what, []]))
    const times = new Map<string, number[]>(ways.map(({ what }) => [what, []]))
    for (let round = 0; round <= rounds; round++) {
      for (const { what, url, path, status } of ways) {
        const connections = await Promise.all(Array.from({ length: inFlight }, () => openConnection(url)))
        const load = await loadFor(roundMs, connections, requestBytes('GET', path, { authorization }), status)
        for (const connection of connections) connection.close()
        // The first round is a warm-up.
        if (round === 0) continue
        rates.get(what)!.push(load.aSecond)
        for (const ms of load.times) times.get(what)!.push(ms)
      }
    }
    await stack.request('DELETE', `/v1/sandboxes/${id}`)
    const rowOf = (of: Map<string, number[]>, unit: string): Row[] =>
      ways.map(({ what }) => ({ what, ours: what !== 'bare Koa', unit, values: of.get(what)! }))
    return {
      rows: [...rowOf(rates, 'per second'), ...rowOf(times, 'ms')],
      notes: [
        `One API process with ${inFlight} requests in flight over persistent connections, in ${rounds} rounds of ${roundMs / 1000} s that alternate between the rows; the client, PostgreSQL and Redis share the machine.`,
        'Requests that end in 404 show the cost of the steps before a handler. `per second` has one value for each round; its 90th and 99th percentiles are the fastest rounds.',
      ],
    }
  },
}
