/**
 * Simulates 1,000 accounts that use their full rate limit for a minute, through two API processes.
 * Half of the accounts send requests at three times the limit. Every response is checked against the token
 * bucket rule.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { makeApiKey } from '../api/auth/api-keys.ts'
import { openDatabase } from '../shared/data/database.ts'
import { newSandboxId } from '../shared/data/ids.ts'
import { type BucketAnswer, mistakesOf } from './bucket-rule.ts'
import { type Connection, openConnection, requestBytes } from './load.ts'
import type { Part } from './part.ts'
import { addressOf, type Stack, startStack } from './stack.ts'

const accounts = 1_000
const limit = 20
const ms = Number(process.env.BENCH_ACCOUNTS_MS ?? 60_000)
/** The extra 2 % ensures that network delays never add up to a token. */
const politeMs = (60_000 / limit) * 1.02
const greedyMs = 60_000 / limit / 3
/** Tokens that an account uses immediately. The remaining tokens allow for network delays. */
const atFirst = limit - 4
const connectionsEach = 48

export const limits: Part = {
  title: `${accounts.toLocaleString('en')} accounts at their limits`,
  needsCluster: false,
  async measure() {
    await using stack = await startStack(
      { SANDBOX_DRIVER: 'local', RATE_SANDBOX_LIFECYCLE_PER_MINUTE: String(limit) },
      { workers: 0, apis: 2 },
    )
    const keys = await makeAccounts(stack, accounts)
    const send = await openPool(stack)
    const end = performance.now() + ms
    const histories = await Promise.all(keys.map((key, at) => useAccount(key, at, send, end)))
    send.close()
    const all = histories.flat()
    const refused = all.filter(({ allowed }) => !allowed).length
    const mistakes = histories.map((history) => mistakesOf(history, limit))
    const wronglyRefused = sum(mistakes.map((each) => each.refused))
    const letThrough = sum(mistakes.map((each) => each.letThrough))
    return {
      rows: [
        { what: 'a request', ours: true, unit: 'ms', values: all.map(({ from, to }) => to - from) },
        { what: 'requests', ours: true, unit: 'per second', values: [all.length / (ms / 1000)] },
      ],
      verdicts: [
        {
          what: `no request wrongly refused: ${wronglyRefused} of ${refused} refusals`,
          met: wronglyRefused === 0,
        },
        {
          what: `no request wrongly allowed: ${letThrough} of ${all.length - refused} allowed`,
          met: letThrough === 0,
        },
      ],
      notes: [
        `\`DELETE\` of a nonexistent sandbox, limited to the default of ${limit} per minute and account, for ${Math.round(ms / 1000)} s. Every account alternates between two API processes.`,
        'Half of the accounts use up their bucket and then send one request per new token; the other half send requests three times as often. A response is wrong if no moment between its request and its arrival explains it.',
      ],
    }
  },
}

const sum = (values: number[]) => values.reduce((a, b) => a + b, 0)

/** Bypasses the API. Returns one API key per account. */
export async function makeAccounts(stack: Stack, count: number): Promise<string[]> {
  const db = openDatabase(stack.services.databaseUrl, { connections: 2 })
  const made = Array.from({ length: count }, (_, at) => ({ id: `acc_${at}`, ...makeApiKey() }))
  for (const { id, hash, lastFour } of made) {
    await db.query(`insert into account (id, email, password_hash) values (?, ?, '\\x00')`, [id, id])
    await db.query('insert into api_key (id, account_id, hash, last_four) values (?, ?, ?, ?)', [
      id,
      id,
      hash,
      lastFour,
    ])
  }
  await db.close()
  return made.map(({ raw }) => raw)
}

type Send = ((api: number, request: Buffer) => Promise<number>) & { close(): void }

/** Requests wait for a free connection. */
async function openPool(stack: Stack): Promise<Send> {
  const pools = await Promise.all(
    stack.apis.map(async (api) => {
      const all = await Promise.all(
        Array.from({ length: connectionsEach }, () => openConnection(addressOf(api))),
      )
      return { all, idle: [...all], waiting: [] as ((connection: Connection) => void)[] }
    }),
  )
  const send = async (at: number, request: Buffer) => {
    const { idle, waiting } = pools[at % pools.length]!
    const connection = idle.pop() ?? (await new Promise<Connection>((resolve) => waiting.push(resolve)))
    const status = await connection.send(request)
    const next = waiting.shift()
    if (next) next(connection)
    else idle.push(connection)
    return status
  }
  const close = () => {
    for (const { all } of pools) for (const connection of all) connection.close()
  }
  return Object.assign(send, { close })
}

async function useAccount(key: string, at: number, send: Send, end: number): Promise<BucketAnswer[]> {
  const request = requestBytes('DELETE', `/v1/sandboxes/${newSandboxId()}`, {
    authorization: `Bearer ${key}`,
  })
  const isPolite = at % 2 === 0
  const everyMs = isPolite ? politeMs : greedyMs
  const history: BucketAnswer[] = []
  let count = 0
  const one = async () => {
    const from = performance.now()
    const status = await send(at + count++, request)
    if (status !== 404 && status !== 429) throw new Error(`the API answered ${status}`)
    history.push({ from, to: performance.now(), allowed: status === 404 })
  }
  await sleep((at / accounts) * Math.min(10_000, ms / 4))
  if (isPolite) for (let first = 0; first < atFirst; first++) await one()
  for (let next = performance.now(); next < end; next += everyMs) {
    await sleep(Math.max(0, next - performance.now()))
    await one()
  }
  return history
}
