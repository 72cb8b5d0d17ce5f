/** Sandboxes as their owner sees them. Every query names the account. */
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { prepare, type Queries, type Row } from '../../shared/data/database.ts'
import { sandboxColumns } from '../../shared/data/entities.ts'
import { billedMs, toSandbox } from '../../shared/data/sandboxes.ts'
import { Problem } from '../../shared/platform/problem.ts'

export type OwnSandbox = ReturnType<typeof toOwn>

/** Columns with what was billed over the sandbox's whole life, in whichever months. */
const columns = `${sandboxColumns}, clock.now,
  ${billedMs("'-infinity'", 'clock.now')} as billed`
const clock = 'with clock as materialized (select sandlot_now() as now)'

const ownById = prepare(
  'own sandbox',
  `${clock} select ${columns} from sandbox, clock where id = ? and account_id = ?`,
)

/** @throws {Problem} `not_found`, also for a sandbox of another account */
export async function findOwn(db: Queries, accountId: string, id: string): Promise<OwnSandbox> {
  const [row] = await db.run(ownById, [id, accountId])
  if (!row) throw new Problem('not_found', 'There is no such sandbox.')
  return toOwn(row)
}

export interface PageOf {
  state: 'active' | 'destroyed' | 'all'
  limit: number
  /** The id that the previous page ended with. */
  before: string | null
}

const inState = { active: 'destroyed_at is null', destroyed: 'destroyed_at is not null', all: 'true' }

/** A statement for each state, so that each of them is served by an index. */
const listIn = (state: PageOf['state']) => ({
  first: prepare(`list ${state}`, listSql(state, 'true')),
  next: prepare(`list ${state} next`, listSql(state, 'id < ?')),
})
const lists = { active: listIn('active'), destroyed: listIn('destroyed'), all: listIn('all') }

function listSql(state: PageOf['state'], after: string): string {
  return `${clock} select ${columns} from sandbox, clock
    where account_id = ? and ${inState[state]} and ${after} order by id desc limit ?`
}

/** Newest first. */
export async function listOwn(
  db: Queries,
  accountId: string,
  { state, before, limit }: PageOf,
): Promise<OwnSandbox[]> {
  const rows =
    before === null
      ? await db.run(lists[state].first, [accountId, limit])
      : await db.run(lists[state].next, [accountId, before, limit])
  return rows.map(toOwn)
}

/** A row, what was billed for it so far, and the time of that. */
const toOwn = (row: Row) => ({
  row: toSandbox(row),
  billedMs: Number(row.billed),
  now: new Date(row.now as string),
})

/** What a client sees of a sandbox: nothing of its pod, and nothing sealed. */
export const present = ({ row, billedMs }: OwnSandbox): Sandbox => ({
  id: row.id,
  state: row.destroyed_at ? 'destroyed' : 'active',
  name: row.name ?? null,
  image: row.image,
  metadata: row.metadata,
  created_at: row.created_at.toISOString(),
  ready_at: row.ready_at?.toISOString() ?? null,
  expires_at: row.expires_at.toISOString(),
  destroyed_at: row.destroyed_at?.toISOString() ?? null,
  destroy_reason: row.destroy_reason ?? null,
  destroy_detail: row.destroy_detail ?? null,
  billed_seconds: billedMs / 1000,
  timings: row.timings,
})
