/** An account of a world, and requests with its credentials. */
import { randomUUID } from 'node:crypto'
import type * as z from 'zod'
import { codesOf } from '../../api/http/responses.ts'
import { type ClientInput, type Endpoint, ProblemDetails } from '../../shared/contract/endpoint.ts'
import { type ErrorCode, errors } from '../../shared/contract/errors.ts'
import { type EndpointName, endpoints } from '../../shared/contract/index.ts'

/** The API processes of a world. */
export interface ApiUrls {
  /** Base address of an API process. */
  url(index?: number): string
}

type Endpoints = typeof endpoints
type Part<N extends EndpointName, P extends 'params' | 'query' | 'body'> = P extends keyof Endpoints[N]
  ? ClientInput<Endpoints[N][P]>
  : never

export interface CallOptions<N extends EndpointName> {
  params?: Part<N, 'params'>
  query?: Partial<Part<N, 'query'>>
  body?: Part<N, 'body'>
  /** The body of a route for bytes. */
  bytes?: Uint8Array | ReadableStream<Uint8Array>
  headers?: Record<string, string>
  /** Index of the API process; the default is the first. */
  api?: number
  signal?: AbortSignal
}

export interface Answer<T> {
  status: number
  headers: Headers
  body: T
}

type ReplyOf<N extends EndpointName> = Endpoints[N] extends { reply: infer R extends z.ZodType }
  ? z.output<R>
  : undefined

/** The error for a rejected request, with its status and problem document. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly status: number
  readonly code: ErrorCode
  readonly headers: Headers
  readonly problem: z.output<typeof ProblemDetails>

  constructor(status: number, headers: Headers, problem: z.output<typeof ProblemDetails>) {
    super(`${status} ${problem.code}: ${problem.detail}`)
    this.status = status
    this.code = problem.code as ErrorCode
    this.headers = headers
    this.problem = problem
  }

  /** Retry-After in seconds. */
  get retryAfter(): number {
    return Number(this.headers.get('retry-after') ?? Number.NaN)
  }
}

/** Returns the refusal of a request. @throws when it succeeds */
export async function expectRefusal(call: Promise<unknown>): Promise<Refusal> {
  try {
    await call
  } catch (error) {
    return error as Refusal
  }
  throw new Error('the call succeeded')
}

export interface NewAccount {
  email?: string
  password?: string
  api?: number
}

export interface Account {
  id: string
  email: string
  password: string
  token: string
  key: string
  keyId: string
  /**
   * Calls a route with its kind of credential, and validates the response against the contract.
   * @throws {Refusal} for an error that the contract lists for the route; any other error fails the test
   */
  call<N extends EndpointName>(name: N, options?: CallOptions<N>): Promise<Answer<ReplyOf<N>>>
  /**
   * Calls a route with a streamed response.
   * @throws {Refusal} as `call` does
   */
  open<N extends EndpointName>(name: N, options?: CallOptions<N>): Promise<Response>
  /** Creates another API key of the account, and returns the account with it. */
  withNewKey(): Promise<Account>
  /** Returns the account with other credentials. */
  with(credentials: Partial<Pick<Account, 'token' | 'key'>>): Account
}

export async function signUp(world: ApiUrls, options: NewAccount = {}): Promise<Account> {
  const { email = `${randomUUID()}@example.com`, password = `password of ${email}`, api = 0 } = options
  const { body } = await callAs(world, {}, 'signUp', { body: { email, password }, api })
  const made = { id: body.account.id, email: body.account.email, password, token: body.token }
  return makeKey(world, made, api)
}

async function makeKey(
  world: ApiUrls,
  of: Pick<Account, 'id' | 'email' | 'password' | 'token'>,
  api?: number,
): Promise<Account> {
  const created = await callAs(world, of, 'createApiKey', { body: {}, ...(api === undefined ? {} : { api }) })
  return accountOf(world, { ...of, key: created.body.key, keyId: created.body.id })
}

type Facts = Pick<Account, 'id' | 'email' | 'password' | 'token' | 'key' | 'keyId'>

const accountOf = (world: ApiUrls, facts: Facts): Account => ({
  ...facts,
  call: (name, options) => callAs(world, facts, name, options),
  open: (name, options) => openAs(world, facts, name, options),
  withNewKey: () => makeKey(world, facts),
  with: (credentials) => accountOf(world, { ...facts, ...credentials }),
})

/** Sends a request to a route with these credentials. @throws {Refusal} */
export async function callAs<N extends EndpointName>(
  world: ApiUrls,
  credentials: { token?: string; key?: string },
  name: N,
  options: CallOptions<N> = {},
): Promise<Answer<ReplyOf<N>>> {
  const endpoint: Endpoint = endpoints[name]
  const response = await openAs(world, credentials, name, options)
  const text = await response.text()
  const body = endpoint.reply ? endpoint.reply.parse(JSON.parse(text)) : undefined
  return { status: response.status, headers: response.headers, body: body as ReplyOf<N> }
}

async function openAs<N extends EndpointName>(
  world: ApiUrls,
  credentials: { token?: string; key?: string },
  name: N,
  options: CallOptions<N> = {},
): Promise<Response> {
  const endpoint: Endpoint = endpoints[name]
  const credential = endpoint.credential === 'none' ? undefined : credentials[endpoint.credential]
  const response = await fetch(`${world.url(options.api)}${pathOf(endpoint, options as object)}`, {
    method: endpoint.method,
    headers: {
      ...(credential ? { authorization: `Bearer ${credential}` } : {}),
      ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...options.headers,
    },
    body: options.bytes ?? (options.body === undefined ? null : JSON.stringify(options.body)),
    ...(options.bytes ? { duplex: 'half' } : {}),
    signal: options.signal ?? null,
    redirect: 'error',
  } as RequestInit)
  const { status, headers } = response
  if (!response.ok) {
    const refusal = new Refusal(status, headers, ProblemDetails.parse(await response.json()))
    assertDocumented(endpoint, refusal)
    throw refusal
  }
  if (
    status !== endpoint.status &&
    status !== endpoint.alsoStatus &&
    !(endpoint.rawReply && status === 206)
  ) {
    throw new Error(`${name} returned ${status}, which is not in the contract`)
  }
  return response
}

/** Requests outside of the contract, such as another method, use `send` of http.ts. */
function assertDocumented(endpoint: Endpoint, { status, code, message }: Refusal): void {
  if (codesOf(endpoint).includes(code) && errors[code].status === status) return
  throw new Error(`${endpoint.name} returned an undocumented error: ${message}`)
}

/** The path of a route with its parameters and query. */
export function pathOf(
  endpoint: Pick<Endpoint, 'path'>,
  { params, query }: { params?: object | undefined; query?: object | undefined } = {},
): string {
  const path = endpoint.path.replace(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent((params as Record<string, string> | undefined)?.[name] ?? 'missing'),
  )
  const fields = new URLSearchParams(
    Object.entries(query ?? {}).flatMap(([name, value]): [string, string][] =>
      typeof value === 'object'
        ? Object.entries<string>(value).map(([key, inner]) => [`${name}.${key}`, inner])
        : [[name, value]],
    ),
  )
  return fields.size === 0 ? path : `${path}?${fields}`
}
