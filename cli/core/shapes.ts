/** Fields of `--json` results. The compiler checks them against the contract. */
import type { Account, SandboxUsage } from '../../shared/contract/account.ts'
import type { Allowlist } from '../../shared/contract/allowlist.ts'
import type { ApiKey, NewApiKey } from '../../shared/contract/api-keys.ts'
import type { ExecOutcome, ExecResult, ExecSummary } from '../../shared/contract/exec.ts'
import type { CreatedFile, FileStat, FileView, ListedEntry } from '../../shared/contract/files.ts'
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import type { Secret } from '../../shared/contract/secrets.ts'
import type { Reply } from './api.ts'

type All<T> = Record<keyof T, 1>

const fields = (named: Record<string, 1>) => Object.keys(named)

export const sandboxFields = fields({
  id: 1,
  state: 1,
  name: 1,
  image: 1,
  metadata: 1,
  created_at: 1,
  ready_at: 1,
  expires_at: 1,
  idle_timeout_seconds: 1,
  destroyed_at: 1,
  destroy_reason: 1,
  destroy_detail: 1,
  billed_seconds: 1,
  timings: 1,
} satisfies All<Sandbox>)

const summary = {
  id: 1,
  pid: 1,
  status: 1,
  exit_code: 1,
  signal: 1,
  start_error: 1,
  stdout_bytes: 1,
  stderr_bytes: 1,
  truncated: 1,
  started_at: 1,
  duration_ms: 1,
  reason: 1,
} as const

export const execOutcomeFields = fields(summary satisfies All<ExecOutcome>)
export const execFields = fields({
  ...summary,
  stdout: 1,
  stderr: 1,
  lossy: 1,
  output_encoding: 1,
} satisfies All<ExecResult>)

export const execSummaryFields = fields({
  ...summary,
  command: 1,
  background: 1,
  tty: 1,
} satisfies All<ExecSummary>)

export const fileViewFields = fields({
  path: 1,
  path_base64: 1,
  size: 1,
  content: 1,
  encoding: 1,
  total_lines: 1,
  sha256: 1,
  truncated: 1,
} satisfies All<FileView>)

const created = { path: 1, path_base64: 1, size: 1, sha256: 1 } as const
export const createdFileFields = fields(created satisfies All<CreatedFile>)
export const editedFileFields = fields({ ...created, replacements: 1 } satisfies All<Reply<'editFile'>>)

const entry = {
  path: 1,
  path_base64: 1,
  name: 1,
  name_base64: 1,
  type: 1,
  size: 1,
  mode: 1,
  uid: 1,
  gid: 1,
  owner: 1,
  group: 1,
  modified_at: 1,
  target: 1,
  target_base64: 1,
} as const
export const fileEntryFields = fields(entry satisfies All<ListedEntry>)
export const fileStatFields = fields(entry satisfies All<FileStat>)

export const watchFields = fields({ event: 1, ...entry, entries: 1 })

const changed = { path: 1, path_base64: 1 } as const
export const movedFileFields = fields(changed satisfies All<Reply<'moveFile'>>)
export const madeDirectoryFields = fields({ ...changed, created: 1 } satisfies All<Reply<'makeDirectory'>>)
export const removedFileFields = fields({ ...changed, removed: 1 } satisfies All<Reply<'removeFile'>>)
export const fileModeFields = fields({ ...changed, mode: 1 } satisfies All<Reply<'changeFileMode'>>)

export const matchFields = fields({
  path: 1,
  path_base64: 1,
  line: 1,
  text: 1,
  text_base64: 1,
} satisfies All<Reply<'grepFiles'>['matches'][number]>)

export const globFields = fields({
  paths: 1,
  paths_base64: 1,
  truncated: 1,
} satisfies All<Reply<'globFiles'>>)

export const allowlistFields = fields({ commands: 1, warnings: 1, refusals: 1 } satisfies All<Allowlist>)
export const decisionFields = fields({
  allowed: 1,
  entry: 1,
  reason: 1,
} satisfies All<Reply<'checkAllowlist'>>)

export const secretFields = fields({ id: 1, name: 1, sandbox_id: 1, created_at: 1 } satisfies All<Secret>)

const key = { id: 1, name: 1, scope: 1, last_four: 1, created_at: 1, expires_at: 1 } as const
export const apiKeyFields = fields({ ...key, last_used_at: 1 } satisfies All<ApiKey>)
export const newApiKeyFields = fields({ ...key, key: 1 } satisfies All<NewApiKey>)

export const accountFields = fields({
  id: 1,
  email: 1,
  created_at: 1,
  api_key: 1,
  usage: 1,
  concurrent: 1,
  limits: 1,
} satisfies All<Account>)

export const sandboxUsageFields = fields({
  id: 1,
  name: 1,
  created_at: 1,
  ready_at: 1,
  destroyed_at: 1,
  milliseconds: 1,
  seconds: 1,
} satisfies All<SandboxUsage>)
