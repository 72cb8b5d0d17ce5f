/**
 * Measures the statements of requests, jobs and the reconciler with up to 1,000,000 sandboxes.
 * PostgreSQL reports the time and the number of rows read.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Database, openDatabase, type Queries } from '../shared/data/database.ts'
import { fillHistory, growingTables } from '../test/support/history.ts'
import { type ExplainedStatement, explainEverything, readPlans } from '../test/support/plans.ts'
import { median, table } from './figures.ts'
import type { Findings, Part } from './part.ts'
import { type Stack, startStack } from './stack.ts'

const sizes = (process.env.BENCH_ROWS ?? '100,10000,1000000').split(',').map(Number)
const rounds = 15
/** Maximum rows per statement, such as a page, or a month of an account that has 1 % of all rows. */
const maxRows = 1_000

/** Each statement is identified by unique words. `isShown` adds it to the chart. */
const operations: { name: string; words: RegExp; isShown?: boolean }[] = [
  { name: 'API key', words: /from api_key join account/ },
  { name: 'one sandbox', words: /from sandbox, clock where id/ },
  { name: 'list, active', words: /and destroyed_at is null and sandbox.id > .* order by sandbox.id desc/ },
  {
    name: 'list, all',
    words: /where account_id = \S+ and sandbox.id > .* order by sandbox.id desc/,
    isShown: true,
  },
  { name: 'list, by image', words: /where array\[account_id, image\] = .* order by sandbox.id desc/ },
  { name: 'usage of the month', words: /as milliseconds from period$/, isShown: true },
  { name: 'usage by sandbox', words: /billed as materialized/ },
  { name: 'admission: active sandboxes', words: /from sandbox where account_id = .* order by expires_at/ },
  { name: 'reaper: ends one', words: /^update sandbox set destroyed_at .* where id = /, isShown: true },
  { name: 'reconciler: rows with a pod', words: /from sandbox where reaped_at is null order/, isShown: true },
  { name: 'reconciler: commands of lost workers', words: /from exec join sandbox/ },
  { name: 'reconciler: old Idempotency-Keys', words: /^delete from idempotency_key where created_at/ },
  { name: 'reconciler: old refusals', words: /^delete from command_refusal/ },
  { name: 'reconciler: deleted accounts', words: /^with done as .* from account/ },
]

export const scale: Part = {
  title: 'Statements, by the size of the tables',
  needsCluster: false,
  async measure() {
    // The generated sandboxes exceed the default monthly quota of sandbox hours.
    const env = {
      SANDBOX_DRIVER: 'local',
      RECONCILE_INTERVAL_SECONDS: '0.2',
      QUOTA_SANDBOX_HOURS_PER_MONTH: '1000000',
    }
    await using stack = await startStack(env, { prepare: explainFromNowOn })
    const db = openDatabase(stack.services.databaseUrl, { connections: 1 })
    const { id } = await stack.request('GET', '/v1/account')
    const found: ExplainedStatement[][] = []
    for (const [at, sandboxes] of sizes.entries()) {
      await fillHistory(quietly(db), { sandboxes, accountId: String(id) }, at === 0 ? 0 : sizes[at - 1]!)
      const log = join(stack.services.folder, 'postgres.log')
      const before = readPlans(log).length
      await use(stack)
      found.push(readPlans(log).slice(before))
    }
    await db.close()
    return present(found)
  },
}

async function explainFromNowOn({ databaseUrl }: Stack['services']) {
  const db = openDatabase(databaseUrl, { connections: 1 })
  await explainEverything(db)
  await db.close()
}

/** Omits the plans of statements that only fill tables. */
const quietly = (db: Database): Pick<Queries, 'query'> => ({
  query: (sql, parameters) =>
    db.transaction(async (queries) => {
      await queries.query('set local auto_explain.log_min_duration = -1')
      return await queries.query(sql, parameters)
    }),
})

async function use({ request }: Stack) {
  const firstPage = await request('GET', '/v1/sandboxes?state=all&limit=50')
  const deep = Buffer.from(`sbx_${'0'.repeat(22)}0100`).toString('base64url')
  for (let round = 0; round < rounds; round++) {
    const { id } = await request('POST', '/v1/sandboxes', {})
    for (const state of ['active', 'all']) await request('GET', `/v1/sandboxes?state=${state}&limit=50`)
    await request('GET', `/v1/sandboxes?state=all&limit=50&cursor=${firstPage.next_cursor ?? deep}`)
    await request('GET', `/v1/sandboxes?state=all&limit=50&cursor=${deep}`)
    await request('GET', '/v1/sandboxes?image=past&limit=50')
    await request('GET', '/v1/account')
    await request('GET', '/v1/account/usage')
    await request('DELETE', `/v1/sandboxes/${id}`)
    await sleep(200)
  }
}

interface StatementCosts {
  times: number[]
  rows: number
  indexes: string[]
}

function find(statements: ExplainedStatement[], words: RegExp): StatementCosts {
  const those = statements.filter(({ text }) => words.test(text))
  const scans = those
    .flatMap((statement) => statement.scans)
    .filter(({ table }) => growingTables.includes(table))
  return {
    times: those.map(({ ms }) => ms),
    rows: Math.max(0, ...scans.map((scan) => scan.rows)),
    indexes: [...new Set(scans.map(({ index, kind }) => index ?? kind))],
  }
}

function present(found: ExplainedStatement[][]): Findings {
  const all = operations.map((operation) => ({
    ...operation,
    at: found.map((statements) => find(statements, operation.words)),
  }))
  const words = (size: number) => `${size.toLocaleString('en')} rows`
  const largest = Math.max(...all.map(({ at }) => at.at(-1)!.rows))
  const missing = all.filter(({ at }) => at.some(({ times }) => times.length === 0))
  if (missing.length > 0) throw new Error(`not seen: ${missing.map(({ name }) => name).join(', ')}`)
  return {
    rows: all
      .filter(({ isShown }) => isShown)
      .flatMap(({ name, at }) =>
        at.map(({ times }, index) => ({
          what: `${name}, ${words(sizes[index]!)}`,
          ours: true,
          unit: 'ms in PostgreSQL',
          values: times,
        })),
      ),
    verdicts: [
      {
        what: `no statement reads more than ${maxRows.toLocaleString('en')} of ${words(sizes.at(-1)!)}: ${largest}`,
        met: largest <= maxRows,
      },
    ],
    notes: [
      'There are as many commands and Idempotency-Keys as sandboxes, spread over two years; one per cent of all rows belongs to the account that sends the requests. Times are those of only the statement, as reported by auto_explain, with plans that are valid for any parameters; the table names the indexes that are used at the largest size.',
    ],
    details: table(
      ['statement', ...sizes.map((size) => `ms, ${words(size)}`), 'rows read', 'index'],
      all.map(({ name, at }) => [
        name,
        ...at.map(({ times }) => median(times).toFixed(2)),
        at.map(({ rows }) => rows).join(', '),
        at.at(-1)!.indexes.join(', '),
      ]),
    ),
  }
}
