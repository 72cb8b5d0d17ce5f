/**
 * Ends of commands that PostgreSQL may yet miss: it was away, or it crashes before it has kept what it took
 * (rows.ts asks it not to wait for its disk). Each is looked at again until it stands there, and written again when it does
 * not: what clients were told stays true.
 */
import type { ExecResult } from '../../shared/contract/exec.ts'
import { type Database, prepare } from '../../shared/database/index.ts'
import type { Logger } from '../../shared/log.ts'
import { recordEnd } from './rows.ts'

export type End = Omit<ExecResult, 'stdout' | 'stderr'>

export interface Ends {
  /** From here on an end is looked after. @param isWritten whether PostgreSQL took it */
  keep(end: End, isWritten: boolean): void
  /** Resolves when PostgreSQL has taken all of them. */
  written(): Promise<void>
  close(): void
}

const lookEveryMs = 1_000
/** PostgreSQL's own bound for what it has taken is three rounds of its WAL writer: 0.6 s unless it was set otherwise. */
const heldAfterMs = 3_000
/** Some 5 MB. It is reached when PostgreSQL is away for long: then the oldest are given up. */
const most = 10_000

const readStatus = prepare('ends that hold', 'select id from exec where id = any(?::text[]) and status = ?')

export function keepEnds(db: Database, log: Logger): Ends {
  const kept = new Map<string, { end: End; writtenAt: number | undefined }>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const look = async () => {
    timer = undefined
    const now = performance.now()
    const due = [...kept.values()].filter(
      ({ writtenAt }) => writtenAt === undefined || now - writtenAt > heldAfterMs,
    )
    await writeMissing(due.map(({ end }) => end)).catch((error) =>
      log.debug({ err: error, ends: due.length }, 'ends of commands wait for the database'),
    )
    lookLater()
  }
  const writeMissing = async (ends: End[]) => {
    if (ends.length === 0) return
    const rows = await db.run<{ id: string }>(readStatus, [ends.map(({ id }) => id), 'running'])
    const missing = new Set(rows.map(({ id }) => id))
    for (const end of ends) {
      if (!missing.has(end.id)) kept.delete(end.id)
      else {
        await recordEnd(db, end)
        kept.set(end.id, { end, writtenAt: performance.now() })
      }
    }
    if (missing.size > 0) log.info({ ends: missing.size }, 'ends that the database had missed were written')
  }
  const lookLater = () => {
    if (isClosed || kept.size === 0) return
    timer ??= setTimeout(() => void look(), lookEveryMs)
    timer.unref()
  }

  return {
    keep(end, isWritten) {
      kept.set(end.id, { end, writtenAt: isWritten ? performance.now() : undefined })
      const [oldest] = kept.keys()
      if (kept.size > most) kept.delete(oldest!)
      lookLater()
    },
    async written() {
      while (!isClosed && [...kept.values()].some(({ writtenAt }) => writtenAt === undefined)) {
        await new Promise((resolve) => setTimeout(resolve, lookEveryMs).unref())
      }
    },
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
