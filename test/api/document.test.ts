/** Valid requests are accepted, invalid ones are rejected, and every response matches `/v1/openapi.json`. */
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Operation } from '../../api/http/docs-page.ts'
import { type ApiDescription, describeApi } from '../../api/http/openapi.ts'
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { endpoints } from '../../shared/contract/index.ts'
import { newSandboxId } from '../../shared/data/ids.ts'
import { type Account, pathOf } from '../support/account.ts'
import { shareSandbox } from '../support/shared.ts'
import { near, operationsOf, type Part, type Place, partsOf, validatorOf } from './document.ts'

const seed = 31

const endpointOf = (name: string) => (endpoints as Record<string, Endpoint>)[name]!

const schemaOf = ({ operationId, place }: Part) => {
  const { params, query, headers, body } = endpointOf(operationId)
  return { path: params, query, header: headers, body }[place]!
}

const shown = (value: unknown) => JSON.stringify(value)?.slice(0, 500)

describe('request schemas', () => {
  test.each(partsOf(describeApi()).map((part) => [`${part.place} of ${part.operationId}`, part] as const))(
    "the OpenAPI document and the server's validation accept the same values: %s",
    (_, part) => {
      const validator = schemaOf(part)
      const values = fc.sample(near(part.schema, part.place), { numRuns: 120, seed })
      const verdicts = values.map((value) => ({
        value: shown(value),
        allowed: part.isAllowed(value),
        taken: validator.safeParse(value).success,
      }))
      expect(verdicts.filter(({ allowed, taken }) => allowed !== taken)).toEqual([])
      const { true: allowed = [], false: forbidden = [] } = Object.groupBy(verdicts, (each) =>
        each.allowed ? 'true' : 'false',
      )
      expect(allowed.length).toBeGreaterThan(5)
      expect(forbidden.length).toBeGreaterThan(2)
    },
  )
})

/** Number of valid and of invalid requests per operation. */
const perOperation = 3

function sidesOf(part: Part) {
  const sent = fc
    .sample(near(part.schema, part.place), { numRuns: 80, seed })
    .filter((value) => canBeSent(part.place, value))
  return {
    allowed: sent.filter(part.isAllowed).slice(0, perOperation),
    forbidden: sent.filter((value) => !part.isAllowed(value)).slice(0, perOperation),
  }
}

type Given = Partial<Record<Place, unknown>>

describe('responses over HTTP', () => {
  const { world, alice, params } = shareSandbox()
  let document: ApiDescription
  let parts: Part[]
  let validatorFor: ReturnType<typeof validatorOf>
  let execId: string

  beforeAll(async () => {
    document = (await (await fetch(`${world.url()}/v1/openapi.json`)).json()) as ApiDescription
    parts = partsOf(document)
    validatorFor = validatorOf(document)
    const body = { command: ['sleep', '600'], background: true }
    execId = (await alice.call('execCommand', { params, body })).body.id
  })

  /** Valid and invalid values of each part that can be sent. */
  const made = new Map<Part, Record<'allowed' | 'forbidden', unknown[]>>()
  const valuesOf = (part: Part) => {
    const values = made.get(part) ?? sidesOf(part)
    made.set(part, values)
    return values
  }

  const partsOfOperation = (name: string) => parts.filter(({ operationId }) => operationId === name)

  const allowedOf = (name: string): Given[] =>
    Array.from({ length: perOperation }, (_, at) =>
      Object.fromEntries(
        partsOfOperation(name).map((part) => {
          const { allowed: values } = valuesOf(part)
          return [part.place, values[at % values.length]]
        }),
      ),
    )

  const send = (name: string, account: Account, given: Given) => {
    const endpoint = endpointOf(name)
    const { method, credential, rawBody } = endpoint
    const body = rawBody ? 'bytes' : given.body === undefined ? null : JSON.stringify(given.body)
    const query = (given.query ?? {}) as Record<string, string>
    return fetch(world.url() + pathOf(endpoint, { params: given.path as object, query }), {
      method,
      body,
      headers: {
        ...definedOf(given.header as Record<string, string | undefined>),
        ...(given.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(credential === 'none' ? {} : { authorization: `Bearer ${account[credential]}` }),
      },
    })
  }

  /** Inserts ids of existing objects, except into operations that delete the object. */
  const withIds = (name: string, given: Given): Given => {
    if (!given.path) return given
    const id = name === 'destroySandbox' ? newSandboxId() : params.id
    const ids = { id, exec_id: execId }
    const known = Object.entries(ids).filter(([field]) => field in (given.path as object))
    return { ...given, path: { ...given.path, ...Object.fromEntries(known) } }
  }

  /** Replaces values that JSON Schema cannot exclude, and values that would make the request slow. */
  const withinReason = (name: string, { body, ...given }: Given): Given => {
    // A random event id does not belong to any call.
    if (name === 'resumeMcp') return { header: { ...(given.header as object), 'last-event-id': undefined } }
    if (name === 'execCommand') return { ...given, body: { ...(body as object), timeout_ms: 1000 } }
    if (name === 'updateSandbox') return { ...given, body: { ...(body as object), ttl_seconds: 1200 } }
    if (name === 'createApiKey') {
      const { expires_at, ...rest } = body as Record<string, unknown>
      return {
        ...given,
        body: expires_at === undefined ? rest : { ...rest, expires_at: '2998-01-01T00:00:00Z' },
      }
    }
    return { ...given, body }
  }

  const assertDocumented = async (operation: Operation, answer: Response) => {
    const described = operation.responses[answer.status]
    expect(described, `status ${answer.status}`).toBeDefined()
    const type = answer.headers.get('content-type')?.split(';')[0]
    const content = described!.content ?? {}
    if (type === undefined) {
      expect(content).toEqual({})
      return undefined
    }
    expect(Object.keys(content)).toContain(type)
    if (!type.endsWith('json')) {
      await answer.body?.cancel()
      return undefined
    }
    const body = await answer.json()
    const validate = validatorFor(content[type]!.schema)
    expect(validate(body), `${JSON.stringify(validate.errors)}: ${shown(body)}`).toBe(true)
    return body
  }

  const isWebSocket = ({ rawReply }: Endpoint) => rawReply === 'websocket'
  const operations = operationsOf(describeApi()).map(
    (operation) => [operation.operationId, operation] as const,
  )

  // Account operations use a separate account, because they may delete it.
  const accountFor = (name: string): Account | Promise<Account> =>
    endpointOf(name).credential === 'token' ? world.account() : alice

  test.each(operations.filter(([name]) => !isWebSocket(endpointOf(name))))(
    'the %s route accepts valid requests',
    async (name, operation) => {
      const account = await accountFor(name)
      for (const given of allowedOf(name)) {
        const sent = withinReason(name, withIds(name, given))
        const answer = await send(name, account, sent)
        const body = (await assertDocumented(operation, answer)) as { code?: string } | undefined
        expect(body?.code, `${shown(sent)}: ${shown(body)}`).not.toBe('invalid_request')
      }
    },
  )

  const sendAndCheck = async (name: string, account: Account, given: Given) => {
    const [, operation] = operations.find(([known]) => known === name)!
    return assertDocumented(operation, await send(name, account, given))
  }

  test('retrying the create request of a destroyed sandbox returns a documented response', async () => {
    const bob = await world.account()
    const header = { 'idempotency-key': 'gone', prefer: 'respond-async' }
    const create = () => sendAndCheck('createSandbox', bob, { header, body: {} })
    const { id } = (await create()) as { id: string }
    await bob.call('destroySandbox', { params: { id } })
    expect(await create()).toMatchObject({ code: 'sandbox_destroyed', sandbox_id: id })
  })

  test('a batch of MCP messages receives a documented response', async () => {
    const header = { accept: 'application/json, text/event-stream' }
    const body = [1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'ping' }))
    expect(await sendAndCheck('callMcp', alice, { header, body })).toHaveLength(2)
  })

  test.each(operations)('the %s route rejects invalid requests as documented', async (name, operation) => {
    const account = await accountFor(name)
    const [allowed = {}] = allowedOf(name)
    let count = 0
    for (const part of partsOfOperation(name)) {
      for (const value of valuesOf(part).forbidden) {
        const given = { ...withIds(name, allowed), [part.place]: value }
        const answer = await send(name, account, given)
        await assertDocumented(operation, answer)
        expect(answer.status, shown(given)).toBe(part.place === 'path' ? 404 : 400)
        count++
      }
    }
    expect(count > 0).toBe(partsOfOperation(name).length > 0)
  })
})

const definedOf = (headers: Record<string, string | undefined> = {}): Record<string, string> =>
  JSON.parse(JSON.stringify(headers))

function canBeSent(place: Place, value: unknown): boolean {
  if (place === 'body') return value !== undefined
  const texts = Object.values(value as object)
  if (place === 'header') return texts.every((text) => /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text))
  if (place === 'path') return texts.length > 0 && texts.every((text) => !['', '.', '..'].includes(text))
  return true
}
