/** Commands in the table `exec` of which nobody knows how they ended, and those that did not run after all. */
import { type RawBuilder, sql } from 'kysely'
import type { Queries } from './database.ts'
import { type ShownExec, shownColumns } from './execs.ts'
import { now } from './sql.ts'
import { statement } from './statement.ts'

/** The reason of a lost command whose worker is gone or silent. */
export const workerLost = 'the worker that ran it was lost'

/** Stands in place of a worker's id for a command that no worker has started. */
export const noWorker = ''

interface LostExec {
  id: string
  sandboxId: string
  sealedCommand: Buffer
  background: boolean
  tty: boolean
  startedAt: Date
  durationMs: number
}

const insertLost = statement<LostExec>()('command is lost', (db, it) =>
  db
    .insertInto('exec')
    .values({
      id: it.id,
      sandbox_id: it.sandboxId,
      worker_id: noWorker,
      sealed_command: it.sealedCommand,
      background: it.background,
      tty: it.tty,
      status: 'lost',
      reason: workerLost,
      truncated: true,
      started_at: it.startedAt,
      duration_ms: it.durationMs,
    })
    .onConflict((conflict) => conflict.doNothing()),
)

/**
 * Inserts the row of a command that was handed over and has none, as lost. The worker inserts its own row before it
 * starts the command, and cannot once this one is there: so no command runs after a client was told that it is lost.
 * Does nothing where the worker was quicker.
 */
export async function insertLostExec(db: Queries, lost: LostExec): Promise<void> {
  await db.run(insertLost, lost)
}

interface UnknownEnd {
  id: string
  sandboxId: string
}

/** How long a command has run until now, or until its sandbox ended, in milliseconds. */
const durationMs = sql`greatest(0, round(1000 * extract(epoch from
  least(${now}, (select destroyed_at from sandbox where id = exec.sandbox_id)) - exec.started_at)))`

/**
 * Ends a command of which nobody knows how it ended. It is lost, or, once its sandbox is destroyed, killed, as clients are
 * told from that moment on: the sandbox's row is held, so that nobody destroys it meanwhile.
 */
const endUnknown = ({ id, sandboxId }: UnknownEnd, more: RawBuilder<unknown>) => sql<ShownExec>`
  with home as (select destroyed_at, destroy_reason from sandbox where id = ${sandboxId} for share)
  update exec
     set status = case when destroyed_at is null then 'lost' else 'killed' end,
         reason = case when destroyed_at is null then ${sql.lit(workerLost)} else destroy_reason end,
         truncated = true, duration_ms = ${durationMs}${more}
    from home where exec.id = ${id} and status = 'running'
  returning ${sql.join(shownColumns.map((column) => sql.ref(`exec.${column}`)))}`

const loseOrphan = statement<UnknownEnd>()('orphan is lost', (_, it) => endUnknown(it, sql``))

/** Of a command that no worker follows. Its output is gone with its worker. */
export async function markOrphanLost(db: Queries, orphan: UnknownEnd): Promise<void> {
  await db.run(loseOrphan, orphan)
}

const lose = statement<UnknownEnd & { stdout: number; stderr: number }>()(
  'command of a silent worker is lost',
  (_, it) =>
    endUnknown(
      it,
      sql`, stdout_bytes = ${it.stdout}, stderr_bytes = ${it.stderr}, is_left = destroyed_at is null`,
    ),
)

/**
 * Of a command that may still run: the sweep ends it.
 * @param printed how many bytes of it the client got
 * @returns undefined when its row says how it ended, or is gone
 */
export async function markLost(
  db: Queries,
  of: UnknownEnd,
  printed: { stdout: number; stderr: number },
): Promise<ShownExec | undefined> {
  const [row] = await db.run(lose, { ...of, ...printed })
  return row
}

/** In a list of ids as JSON. */
const listed = (ids: string) => sql<string>`(select jsonb_array_elements_text(${ids}::jsonb))`

const missing = statement<{ live: string }>()('missing workers', (db, { live }) => {
  const workers = db.selectFrom('exec').select('worker_id').where('worker_id', 'not in', listed(live))
  return workers
    .where('status', '=', 'running')
    .union(workers.where('is_left', '=', sql.lit(true)).where('pid', 'is', null))
})

/** Ids of workers that have commands which run, or of which something may be left, and are not among these. */
export async function findMissingWorkers(db: Queries, live: string[]): Promise<string[]> {
  return (await db.run(missing, { live: JSON.stringify(live) })).map(({ worker_id }) => worker_id)
}

interface OrphanPage {
  /** The id that the previous page ended with. */
  after: string
  limit: number
}

const orphans = statement<OrphanPage & { gone: string }>()('orphans', (db, { gone, after, limit }) =>
  db
    .selectFrom('exec')
    .innerJoin('sandbox', 'sandbox.id', 'sandbox_id')
    .select(['exec.id', 'pid', 'sandbox_id', 'pod_name', 'pod_uid', 'destroy_reason', 'is_left'])
    .where(({ or, and, eb }) =>
      or([
        and([eb('status', '=', 'running'), eb('worker_id', 'in', listed(gone))]),
        // A worker that lives may yet write the pid, or take the command back.
        and([
          eb('is_left', '=', sql.lit(true)),
          or([eb('pid', 'is not', null), eb('worker_id', 'in', listed(gone))]),
        ]),
      ]),
    )
    .where('exec.id', '>', after)
    .orderBy('exec.id')
    .limit(limit),
)

/** Commands that no worker follows any more: those of the workers that are gone, and those that were told as lost. */
export const findOrphans = (db: Queries, gone: string[], page: OrphanPage) =>
  db.run(orphans, { gone: JSON.stringify(gone), ...page })
export type Orphan = Awaited<ReturnType<typeof findOrphans>>[number]

const unleave = statement<{ id: string }>()('orphan has ended', (db, { id }) =>
  db.updateTable('exec').set({ is_left: false }).where('id', '=', id),
)

/** Nothing of it is left to end. */
export async function markEnded(db: Queries, id: string): Promise<void> {
  await db.run(unleave, { id })
}

const running = statement<{ ids: string[] }>()('ends that were lost', (db, { ids }) =>
  db
    .selectFrom('exec')
    .select('id')
    .where('id', '=', sql<string>`any(${ids}::text[])`)
    .where('status', '=', 'running'),
)

/** Which of these run, as their rows say. */
export async function findRunning(db: Queries, ids: string[]): Promise<Set<string>> {
  return new Set((await db.run(running, { ids })).map(({ id }) => id))
}

const takeBack = statement<{ ids: string[] }>()(
  'take back commands',
  (_, { ids }) => sql<{ clock_ms: number }>`
  with forgotten as (delete from exec where id = any(${ids}::text[]) and status = 'running'),
       told as (update exec set is_left = false where id = any(${ids}::text[]) and is_left)
  select (extract(epoch from statement_timestamp()) * 1000)::double precision as clock_ms`,
)

/**
 * Removes the rows of commands that did not run after all, and their Idempotency-Keys with them. A row that says
 * `lost`, because clients were told so, stays; nothing is left to end.
 * @returns PostgreSQL's clock, in milliseconds since 1970: no row was there any more that it had before
 */
export async function takeBackExecs(db: Queries, ids: string[]): Promise<number> {
  const [row] = await db.run(takeBack, { ids })
  return row!.clock_ms
}
