import { randomUUID } from 'node:crypto'
import type * as z from 'zod'
import { codesOf } from '../../api/http/responses.ts'
import { type ClientInput, type Endpoint, ProblemDetails } from '../../shared/contract/endpoint.ts'
import { type ErrorCode, errors } from '../../shared/contract/errors.ts'
import { type EndpointName, endpoints } from '../../shared/contract/index.ts'

export interface ApiUrls {
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
  bytes?: Uint8Array | ReadableStream<Uint8Array>
  headers?: Record<string, string>
  /** Index of the API process. */
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

/** A rejected request's status and problem document. */
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

  get retryAfter(): number {
    return Number(this.headers.get('retry-after') ?? Number.NaN)
  }
}

/** Returns the error of a request. @throws if the request succeeds */
export async function expectRefusal(call: Promise<unknown>): Promise<Refusal> {
  try {
    await call
  } catch (error) {
    return error as Refusal
  }
  throw new Error('the call succeeded')
}

/** Returns the error code of a request, or `success`. */
export const codeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'success',
    (refusal: Pick<Refusal, 'code'>) => refusal.code,
  )

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
   * Validates the response against the contract.
   * @throws {Refusal} for documented errors. All other errors fail the test.
   */
  call<N extends EndpointName>(name: N, options?: CallOptions<N>): Promise<Answer<ReplyOf<N>>>
  /** Like `call`, but returns the response before its body. */
  open<N extends EndpointName>(name: N, options?: CallOptions<N>): Promise<Response>
  withNewKey(): Promise<Account>
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

/** @throws {Refusal} for documented errors */
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
    const text = await response.text()
    if (!text.startsWith('{'))
      throw new Error(`${name} returned ${status} with the body ${JSON.stringify(text)}`)
    const refusal = new Refusal(status, headers, ProblemDetails.parse(JSON.parse(text)))
    assertDocumented(endpoint, refusal)
    throw refusal
  }
  if (
    status !== endpoint.status &&
    status !== endpoint.alsoStatus &&
    !(endpoint.alsoFound && status === 200) &&
    !(endpoint.rawReply && status === 206)
  ) {
    throw new Error(`${name} returned ${status}, which is not in the contract`)
  }
  return response
}

/** @throws if the contract does not document the error. To test such errors, use `send` of http.ts. */
function assertDocumented(endpoint: Endpoint, { status, code, message }: Refusal): void {
  if (codesOf(endpoint).includes(code) && errors[code].status === status) return
  throw new Error(`${endpoint.name} returned an undocumented error: ${message}`)
}

export function pathOf(
  endpoint: Pick<Endpoint, 'path'>,
  { params, query }: { params?: object | undefined; query?: object | undefined } = {},
): string {
  const path = endpoint.path.replace(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent((params as Record<string, string> | undefined)?.[name] ?? '\0'),
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
