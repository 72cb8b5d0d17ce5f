/** What the API and the workers must agree on about a command's row. */
import { shellWord } from '../contract/shell-words.ts'

/** What a command's line is sealed for. */
export const commandSealContext = (execId: string) => `exec-command ${execId}`

/** The reason of a lost command whose worker is gone or silent. */
export const workerLost = 'the worker that ran it was lost'

/** Stands in place of a worker's id for a command that no worker has started. */
export const noWorker = ''

/** In SQL: how long a command has run until now, or until its sandbox ended, in milliseconds. */
const execDurationMs = `greatest(0, round(1000 * extract(epoch from
  least(sandlot_now(), (select destroyed_at from sandbox where id = exec.sandbox_id)) - exec.started_at)))`

/**
 * SQL that ends a command of which nobody knows how it ended, with three values: its sandbox's id, {@link workerLost}, its
 * own id. It is lost, or, once its sandbox is destroyed, killed, as clients are told from that moment on: the sandbox's row is
 * held, so that nobody destroys it meanwhile.
 * @param more further assignments, with values of their own behind the second
 */
export const endUnknown = (more = '') => `
  with home as (select destroyed_at, destroy_reason from sandbox where id = ? for share)
  update exec
     set status = case when destroyed_at is null then 'lost' else 'killed' end,
         reason = case when destroyed_at is null then ? else destroy_reason end,
         truncated = true, duration_ms = ${execDurationMs}${more}
    from home where exec.id = ? and status = 'running'`

const lineCharacters = 300

/** A command as a line for people: quoted where a shell would need it, cut. */
export function oneLine(command: string | string[]): string {
  const text = typeof command === 'string' ? command : command.map(shellWord).join(' ')
  const line = text.replaceAll(/\s*\n\s*/g, ' ⏎ ')
  return line.length > lineCharacters ? `${line.slice(0, lineCharacters - 1)}…` : line
}
