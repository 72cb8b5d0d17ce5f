/** What clients were told of commands, beside the rows, and beside what the sandboxes saw run. */
import type { Queries } from '../../../shared/data/database.ts'
import type { CommandEntry, Ledger, SandboxEntry, Told } from '../ledger.ts'
import { short } from '../traffic/lane.ts'

interface Row extends Record<string, unknown> {
  id: string
  status: string
  exit_code: number | null
  reason: string | null
  sandbox_is_destroyed: boolean
  has_key: boolean
}

/** The clock of a sandbox is the machine's; a client learns of things a little later than they are. */
const slackMs = 1_000
/** A command begins at most so long before the crash that takes its line along: its own time, and a stand-still. */
const crashMs = 30_000

export interface CommandSums {
  commands: number
  /** Of those, whose sandbox was looked into. */
  lookedInto: number
  ran: number
  /** Ends that were told and went with a crash of PostgreSQL right behind: with the row, or with the worker, which died too. */
  forgotten: number
}

export async function checkCommands(db: Queries, ledger: Ledger): Promise<CommandSums> {
  const sums: CommandSums = { commands: 0, lookedInto: 0, ran: 0, forgotten: 0 }
  for (const sandbox of ledger.sandboxes.values()) {
    const rows = await db.query<Row>(
      `select exec.id, status, exit_code, reason, destroyed_at is not null as sandbox_is_destroyed,
              idempotency_key is not null as has_key
         from exec join sandbox on sandbox.id = sandbox_id where sandbox_id = ?`,
      [sandbox.id],
    )
    const byId = new Map(rows.map((row) => [row.id, row]))
    for (const entry of sandbox.commands) {
      checkTold(ledger, entry, byId, sums)
      checkRan(ledger, sandbox, entry, sums)
    }
  }
  return sums
}

function checkTold(ledger: Ledger, entry: CommandEntry, rows: Map<string, Row>, sums: CommandSums): void {
  // One that was told to be lost before it began stands in the list without the key, and has not run.
  const isOne = (id: string) => rows.has(id) && (!entry.key || rows.get(id)!.has_key)
  const known = new Set(entry.told.map(({ id }) => id).filter(isOne))
  if (known.size > 1) ledger.wrong('one request made two commands', { entry: short(entry) }, [...known])
  for (const told of entry.told) {
    const row = rows.get(told.id)
    // Nothing was claimed of it but that nothing is known.
    if (!row && (told.status === 'lost' || told.status === 'killed')) continue
    // What PostgreSQL took in its last moments is written again by the worker that told it, unless that dies as well.
    // With a key it is on the disk before it is told.
    const others = ['lost', 'killed']
    const mayGo = row && !row.has_key && told.status !== 'lost' && others.includes(row.status)
    if (mayGo && crashedSince(ledger, told)) {
      sums.forgotten++
      continue
    }
    // A command without a key is not on the disk before it runs: a crash takes its line along.
    if (!row && !entry.key && ledger.crashes.some((at) => Math.abs(at - told.at) < crashMs)) {
      sums.forgotten++
      continue
    }
    if (row && agree(told, row)) continue
    ledger.wrong(
      `told ${told.status}, the row says ${row?.status ?? 'nothing'}`,
      { told, row, entry: short(entry) },
      [told.id],
    )
  }
}

/**
 * Between the end of a command and the moment at which the disk has it: the WAL writer of PostgreSQL is late by 0.6 s at
 * most of the time that it runs. A client may hear of the end much later: its answer waits on a frozen wire.
 */
function crashedSince(ledger: Ledger, told: Told): boolean {
  const endedAt = ledger.endedAt(told.id) ?? told.at - slackMs
  return ledger.crashes.some((at) => {
    const stood = ledger.standstills.map(({ from, to }) =>
      Math.max(0, Math.min(to, at) - Math.max(from, told.at)),
    )
    const ranMs = at - told.at - stood.reduce((a, b) => a + b, 0)
    return at > endedAt && ranMs < slackMs
  })
}

function agree(told: Told, row: Row): boolean {
  // The command ended with its sandbox, and every later answer says so.
  const status = row.status === 'running' && row.sandbox_is_destroyed ? 'killed' : row.status
  return told.status === status && told.exitCode === row.exit_code
}

function checkRan(ledger: Ledger, sandbox: SandboxEntry, entry: CommandEntry, sums: CommandSums): void {
  sums.commands++
  if (!sandbox.ran) return
  sums.lookedInto++
  const times = sandbox.ran.get(entry.token) ?? []
  const evidence = { entry: short(entry), ran: times }
  const ids = entry.told.map(({ id }) => id)
  if (times.length > 0) sums.ran++
  if (times.length > 1) ledger.wrong('a command ran twice', evidence, ids)
  const exited = entry.told.some(({ status }) => status === 'exited')
  if (exited && times.length === 0)
    ledger.wrong('a command that never ran is said to have ended', evidence, ids)
  // Asked for again, it may run after the first answer.
  if (entry.attempts > 1 || times.length === 0) return
  const words = [...entry.told.map(({ at }) => at), ...entry.refusedAt]
  const last = Math.min(...words)
  if (times[0]! > last + slackMs) {
    ledger.wrong(
      'a command ran after a client was told that it is over',
      { ...evidence, lateMs: times[0]! - last },
      ids,
    )
  } else if (entry.refusedAt.length > 0 && entry.told.length === 0) {
    ledger.wrong('a command ran that was refused', evidence, [sandbox.id])
  }
}
