/** What a client that works in one sandbox has at hand. */
import type { Account } from '../../support/account.ts'
import type { CommandEntry, Ledger, SandboxEntry, Told } from '../ledger.ts'
import { between, type Random } from '../random.ts'
import { apiCount } from '../stage.ts'

export interface Lane {
  ledger: Ledger
  account: Account
  url: (api: number) => string
  sandbox: SandboxEntry
  params: { id: string }
  random: Random
}

export const anyApi = ({ random }: Pick<Lane, 'random'>): number => between(random, 0, apiCount - 1)

let tokens = 0
/** Never said twice, and nothing that a shell would change. */
export const newToken = (): string => `t${++tokens}-${process.pid}`

/** No command goes on for longer: what is said to run later does not. */
export const timeoutMs = 20_000

/** A command that writes down when it starts, then does what it is for. */
export function newCommand(
  { sandbox }: Lane,
  kind: string,
  expected: CommandEntry['expected'],
  more: Partial<CommandEntry> = {},
): CommandEntry {
  const entry: CommandEntry = {
    token: newToken(),
    kind,
    sandboxId: sandbox.id,
    expected,
    attempts: 0,
    told: [],
    refusedAt: [],
    ...more,
  }
  sandbox.commands.push(entry)
  return entry
}

/** Appends are whole: no two commands write into each other's line. */
export const writesItself = ({ token }: CommandEntry): string =>
  `echo "${token} $(date +%s%3N)" >> "$HOME/ran"`

/** As the API tells of a command, with or without its output. */
interface Result {
  id: string
  status: string
  exit_code: number | null
  reason: string | null
  stdout_bytes: number
  stderr_bytes: number
  truncated: boolean
  stdout?: string
  stderr?: string
}

/** Writes down what a client was told of a command, and holds it against what the command does. */
export function judge({ ledger }: Pick<Lane, 'ledger'>, entry: CommandEntry, result: Result): void {
  if (result.status === 'running') return
  const { id, status, exit_code: exitCode, reason } = result
  const told: Told = { at: Date.now(), id, status, exitCode, reason }
  entry.told.push(told)
  ledger.note(
    `told of: ${entry.kind}`,
    status === 'killed' || status === 'lost' ? `${status}: ${reason}` : status,
  )
  if (status !== 'exited') return
  const { expected } = entry
  if (exitCode !== expected.exitCode) {
    ledger.wrong('an exit code was invented', { entry: short(entry), result: shortOf(result) }, [id])
    return
  }
  const bytes = { stdout: Buffer.byteLength(expected.stdout), stderr: Buffer.byteLength(expected.stderr) }
  // What did not come is told: by the field, and by the reason.
  const isShort = result.truncated && reason !== null
  const isFit = (told: number, printed: number) => told === printed || (isShort && told < printed)
  if (!isFit(result.stdout_bytes, bytes.stdout) || !isFit(result.stderr_bytes, bytes.stderr)) {
    ledger.wrong(
      'output is missing, or more than there was',
      { entry: short(entry), bytes, result: shortOf(result) },
      [id],
    )
  }
  if (result.truncated || result.stdout === undefined) return
  if (result.stdout !== expected.stdout || result.stderr !== expected.stderr) {
    ledger.wrong('output is not what was printed', { entry: short(entry), result: shortOf(result) }, [id])
  }
}

const cut = (text: string) => (text.length > 300 ? `${text.slice(0, 300)}… (${text.length})` : text)

export const short = (entry: CommandEntry) => ({
  ...entry,
  expected: { ...entry.expected, stdout: cut(entry.expected.stdout), stderr: cut(entry.expected.stderr) },
})

const shortOf = (result: Result) => ({
  ...result,
  stdout: cut(result.stdout ?? ''),
  stderr: cut(result.stderr ?? ''),
})
