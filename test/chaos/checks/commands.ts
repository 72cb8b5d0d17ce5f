/** Compares results that clients received with the database rows and with the commands that ran. */
import type { Queries } from '../../../shared/data/database.ts'
import type { CommandEntry, Recorder, ReportedResult, SandboxEntry } from '../recorder.ts'
import { short } from '../traffic/lane.ts'

interface Row extends Record<string, unknown> {
  id: string
  status: string
  exit_code: number | null
  reason: string | null
  sandbox_is_destroyed: boolean
  has_key: boolean
}

/**
 * Tolerated delay, because clients receive a result slightly after the command has ended. Sandboxes use the
 * machine's clock.
 */
const slackMs = 1_000
/** Maximum time between a command's start and the crash that loses its row, in milliseconds. */
const crashMs = 30_000

export interface CommandSums {
  commands: number
  checked: number
  ran: number
  /** Reported results that a PostgreSQL crash then lost. */
  forgotten: number
}

export async function checkCommands(db: Queries, recorder: Recorder): Promise<CommandSums> {
  const sums: CommandSums = { commands: 0, checked: 0, ran: 0, forgotten: 0 }
  for (const sandbox of recorder.sandboxes.values()) {
    const rows = await db.query<Row>(
      `select exec.id, status, exit_code, reason, destroyed_at is not null as sandbox_is_destroyed,
              idempotency_key is not null as has_key
         from exec join sandbox on sandbox.id = sandbox_id where sandbox_id = ?`,
      [sandbox.id],
    )
    const byId = new Map(rows.map((row) => [row.id, row]))
    for (const entry of sandbox.commands) {
      checkReported(recorder, entry, byId, sums)
      checkRan(recorder, sandbox, entry, sums)
    }
  }
  return sums
}

function checkReported(
  recorder: Recorder,
  entry: CommandEntry,
  rows: Map<string, Row>,
  sums: CommandSums,
): void {
  // A command that was lost before its start has not run, and its row has no key.
  const isOne = (id: string) => rows.has(id) && (!entry.key || rows.get(id)!.has_key)
  const ids = new Set(entry.reported.map(({ id }) => id).filter(isOne))
  if (ids.size > 1) recorder.wrong('one request started two commands', { entry: short(entry) }, [...ids])
  for (const reported of entry.reported) {
    const row = rows.get(reported.id)
    if (!row && (reported.status === 'lost' || reported.status === 'killed')) continue
    // The worker repeats the last commits before a crash, unless it also dies. With a key, the status is on
    // disk first.
    const others = ['lost', 'killed']
    const mayGo = row && !row.has_key && reported.status !== 'lost' && others.includes(row.status)
    if (mayGo && crashedSince(recorder, reported)) {
      sums.forgotten++
      continue
    }
    // Without a key, the row may not be on disk when the command starts. A crash can then lose the row.
    if (!row && !entry.key && recorder.crashes.some((at) => Math.abs(at - reported.at) < crashMs)) {
      sums.forgotten++
      continue
    }
    if (row && agree(reported, row)) continue
    recorder.wrong(
      `reported ${reported.status}, the row says ${row?.status ?? 'nothing'}`,
      { reported, row, entry: short(entry) },
      [reported.id],
    )
  }
}

/**
 * Whether PostgreSQL crashed so soon after an exit status was reported that the status may be lost.
 * PostgreSQL's WAL writer flushes within 0.6 s, except during a freeze. A frozen connection can delay the
 * client further.
 */
function crashedSince(recorder: Recorder, reported: ReportedResult): boolean {
  const endedAt = recorder.endedAt(reported.id) ?? reported.at - slackMs
  return recorder.crashes.some((at) => {
    const frozen = recorder.freezes.map(({ from, to }) =>
      Math.max(0, Math.min(to, at) - Math.max(from, reported.at)),
    )
    const ranMs = at - reported.at - frozen.reduce((a, b) => a + b, 0)
    return at > endedAt && ranMs < slackMs
  })
}

function agree(reported: ReportedResult, row: Row): boolean {
  // The sandbox ended, so later responses report `killed`.
  const status = row.status === 'running' && row.sandbox_is_destroyed ? 'killed' : row.status
  return reported.status === status && reported.exitCode === row.exit_code
}

function checkRan(recorder: Recorder, sandbox: SandboxEntry, entry: CommandEntry, sums: CommandSums): void {
  sums.commands++
  if (!sandbox.ran) return
  sums.checked++
  const times = sandbox.ran.get(entry.token) ?? []
  const evidence = { entry: short(entry), ran: times }
  const ids = entry.reported.map(({ id }) => id)
  if (times.length > 0) sums.ran++
  if (times.length > 1) recorder.wrong('a command ran twice', evidence, ids)
  const exited = entry.reported.some(({ status }) => status === 'exited')
  if (exited && times.length === 0)
    recorder.wrong('a command that never ran was reported as exited', evidence, ids)
  // Repeated requests may start a command after the first response.
  if (entry.attempts > 1 || times.length === 0) return
  const responses = [...entry.reported.map(({ at }) => at), ...entry.refusedAt]
  const first = Math.min(...responses)
  if (times[0]! > first + slackMs) {
    recorder.wrong(
      'a command ran after it was reported as ended',
      { ...evidence, lateMs: times[0]! - first },
      ids,
    )
  } else if (entry.refusedAt.length > 0 && entry.reported.length === 0) {
    recorder.wrong('a refused command ran', evidence, [sandbox.id])
  }
}
