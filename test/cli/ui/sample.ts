import { Settings } from '../../../cli/core/settings.ts'
import { createUi } from '../../../cli/ui/create-ui.ts'
import { newFolder } from '../../../cli/ui/folder.ts'
import { OutputTail } from '../../../cli/ui/output-tail.ts'
import { newPageId } from '../../../cli/ui/pages.ts'
import { press } from '../../../cli/ui/press.ts'
import { firstState, type OutputPage, type SessionPage, type State } from '../../../cli/ui/state.ts'
import type { Ui } from '../../../cli/ui/ui.ts'
import type { Account } from '../../../shared/contract/account.ts'
import type { ExecSummary } from '../../../shared/contract/exec.ts'
import type { FileEntry } from '../../../shared/contract/files.ts'
import type { Sandbox } from '../../../shared/contract/sandboxes.ts'

export const start = Date.parse('2026-11-21T12:00:00.000Z')
export const now = start + 5 * 60_000
const at = (ms: number) => new Date(ms).toISOString()

export const session = (change: Partial<Sandbox> = {}): Sandbox => ({
  id: 'sbx_01kb0000000000000000000001',
  state: 'active',
  name: 'web',
  image: 'debian:bookworm-slim',
  metadata: {},
  created_at: at(start),
  ready_at: at(start + 300),
  expires_at: at(start + 30 * 60_000),
  idle_timeout_seconds: null,
  destroyed_at: null,
  destroy_reason: null,
  destroy_detail: null,
  billed_seconds: 299.7,
  timings: {},
  ...change,
})

export const ended = (change: Partial<Sandbox> = {}) =>
  session({
    state: 'destroyed',
    destroyed_at: at(start + 4 * 60_000),
    destroy_reason: 'expired',
    ...change,
  })

export const command = (change: Partial<ExecSummary> = {}): ExecSummary => ({
  id: 'exec_1',
  pid: 7,
  status: 'exited',
  exit_code: 0,
  signal: null,
  start_error: null,
  stdout_bytes: 3,
  stderr_bytes: 0,
  truncated: false,
  started_at: at(start + 60_000),
  duration_ms: 1234,
  reason: null,
  command: 'npm test',
  background: false,
  tty: false,
  ...change,
})

export const entry = (name: string, type: FileEntry['type'], change: Partial<FileEntry> = {}): FileEntry => ({
  ...{ name, type, size: 2048, mode: '644', uid: 1000, gid: 1000, owner: null, group: null },
  modified_at: at(start),
  ...change,
})

export const account: Account = {
  id: 'acc_1',
  email: 'ada@example.com',
  created_at: at(start),
  api_key: { id: 'key_1', scope: 'full' },
  usage: { month: '2026-11', milliseconds: 11_520_000, sandbox_hours: 3.2, limit: 20 },
  concurrent: { active: 2, limit: 5 },
  limits: { sandbox_seconds: 1800, sandbox_ops_per_minute: 120, sandbox_lifecycle_per_minute: 20 },
}

export const stateWith = (sessions: Sandbox[], change: Partial<State> = {}): State => ({
  ...firstState,
  address: 'http://localhost:8080',
  account,
  sessions: new Map(sessions.map((each) => [each.id, each])),
  ...change,
})

export const sessionPage = (id: string, change: Partial<SessionPage> = {}): SessionPage => ({
  at: 'session',
  pageId: newPageId(),
  id,
  tab: 'commands',
  commands: undefined,
  askedAt: 0,
  selectedCommand: undefined,
  folder: newFolder('/workspace'),
  ...change,
})

export function tailOf(text: string): OutputTail {
  const output = new OutputTail()
  output.add(text)
  return output
}

export const outputPage = (change: Partial<OutputPage> = {}): OutputPage => ({
  at: 'output',
  pageId: newPageId(),
  id: 'sbx_1',
  execId: 'exec_1',
  command: 'sleep 99',
  output: new OutputTail(),
  status: '▸ running',
  isRunning: true,
  isInterrupted: false,
  top: 'end',
  ...change,
})

/** The newest session is last. */
export const many = (count: number): Sandbox[] =>
  Array.from({ length: count }, (_, index) =>
    session({
      id: `sbx_${String(index).padStart(26, '0')}`,
      name: `job-${index}`,
      created_at: at(start + index),
    }),
  )

/** Opens a picker without a terminal. Its default service is unreachable. */
export async function openUi(url = 'http://127.0.0.1:9') {
  const quits: number[] = []
  const ui = await createUi(new Settings({ url, apiKey: 'sandlot_live_a' }, {}), {
    leaveTo: (use) => use(),
    write() {},
    quit: (code) => void quits.push(code),
  })
  return Object.assign(ui, { quits, [Symbol.dispose]: () => ui.quit() })
}

/** Presses keys. Keys with one character also type this character. */
export function pressAll(ui: Ui, ...keys: string[]): void {
  for (const key of keys) press(ui, { key, text: key.length === 1 ? key : '' })
}
