import type { Account } from '../../shared/contract/account.ts'
import type { ExecSummary } from '../../shared/contract/exec.ts'
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import type { Folder } from './folder.ts'
import type { Form } from './form.ts'
import type { OutputTail } from './output-tail.ts'

export interface State {
  size: { rows: number; columns: number }
  /** Stack of open pages. The last page is shown, and Esc closes it. */
  pages: Page[]
  dialog: Dialog | undefined
  notice: { text: string; isError: boolean } | undefined
  address: string | undefined
  /** Id or name of the session that commands use by default. */
  chosen: string | undefined

  account: Account | undefined
  /** Loaded sessions by id, even if they have ended since. Undefined until the first response. */
  sessions: ReadonlyMap<string, Sandbox> | undefined
  /** Cursor of the next page of destroyed sessions: undefined before the first page, null after the last. */
  destroyedFrom: string | null | undefined
  isLoadingMore: boolean
  /** Last command of each session, by session id. Null if the session has no commands. */
  lastCommands: ReadonlyMap<string, ExecSummary | null>
  trouble: Trouble | undefined

  showsDestroyed: boolean
  filter: string
  /** Commands that the user has run, by session id, newest last. */
  ran: ReadonlyMap<string, string[]>
  opening: Opening | undefined
  selected: string | undefined
}

export interface Trouble {
  /** True if the service is unavailable, false if the service rejected the request. */
  isUnavailable: boolean
  since: number
  message: string
}

export interface Opening {
  program: 'shell' | 'pager'
  /** Keys typed so far, encoded as a terminal sends them. */
  typed: string
}

export type Page = FirstRunPage | ListPage | SessionPage | OutputPage
interface AnyPage {
  /** Identifies the page. Stays the same when a change replaces the page object. */
  pageId: number
}
export interface FirstRunPage extends AnyPage {
  at: 'first-run'
  step: 'address' | 'method' | 'sign-up' | 'key'
  address: string
  method: number
}
interface ListPage extends AnyPage {
  at: 'list'
}
export interface SessionPage extends AnyPage {
  at: 'session'
  id: string
  tab: 'commands' | 'files'
  /** Commands of the session, newest first. Undefined until loaded. */
  commands: ExecSummary[] | undefined
  askedAt: number
  selectedCommand: string | undefined
  folder: Folder
}
export interface OutputPage extends AnyPage {
  at: 'output'
  id: string
  execId: string | undefined
  command: string
  output: OutputTail
  status: string
  isRunning: boolean
  isInterrupted: boolean
  /** Number of the first line shown, or `end` to follow the output. */
  top: number | 'end'
}

export type Dialog =
  | { kind: 'form'; form: Form; isPrompt: boolean }
  | { kind: 'confirm'; question: string; onYes: () => void }
  /**
   * A message that only Enter or Esc closes. Other keys have no effect, because the user may have typed them
   * for a program that could not be opened or has ended.
   */
  | { kind: 'message'; text: string }
  | { kind: 'help'; top: number }
  | { kind: 'copy'; at: number }

export const firstState: State = {
  size: { rows: 24, columns: 80 },
  pages: [{ at: 'list', pageId: 0 }],
  dialog: undefined,
  notice: undefined,
  address: undefined,
  chosen: undefined,
  account: undefined,
  sessions: undefined,
  destroyedFrom: undefined,
  isLoadingMore: false,
  lastCommands: new Map(),
  trouble: undefined,
  showsDestroyed: false,
  filter: '',
  ran: new Map(),
  opening: undefined,
  selected: undefined,
}

export interface Store {
  get(): State
  set(change: Partial<State> | ((state: State) => Partial<State>)): void
  /** Calls the listener after each change. Returns a function that unregisters the listener. */
  subscribe(listener: () => void): () => void
}

export function createStore(): Store {
  let state = firstState
  const listeners = new Set<() => void>()
  return {
    get: () => state,
    set(change) {
      state = keepSelection({ ...state, ...(typeof change === 'function' ? change(state) : change) }, state)
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

export const pageOf = (state: State): Page => state.pages.at(-1)!

type Sessions = NonNullable<State['sessions']>
/**
 * Caches the sorted list, which many views need for each frame. Sorting 1,000 sessions takes milliseconds.
 */
const listed = new WeakMap<Sessions, { key: string; sessions: Sandbox[] }>()

/** Returns the sessions to list, newest first. */
export function listedSessions({ sessions, showsDestroyed, filter }: State): Sandbox[] {
  if (sessions === undefined) return []
  const key = `${showsDestroyed} ${filter}`
  const before = listed.get(sessions)
  if (before?.key === key) return before.sessions
  const now = list(sessions, showsDestroyed, filter)
  listed.set(sessions, { key, sessions: now })
  return now
}

function list(sessions: Sessions, showsDestroyed: boolean, filter: string): Sandbox[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
  return [...sessions.values()]
    .filter((session) => showsDestroyed || session.state === 'active')
    .filter((session) => {
      const text = [session.id, session.name, session.image, ...Object.entries(session.metadata).flat()]
      return words.every((word) => text.join(' ').toLowerCase().includes(word))
    })
    .sort((a, b) => (a.created_at === b.created_at ? order(b.id, a.id) : order(b.created_at, a.created_at)))
}

const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

/** Keeps the same session selected. If it leaves the list, selects the session that takes its place. */
function keepSelection(state: State, before: State): State {
  const listed = listedSessions(state)
  if (listed.length === 0 || listed.some(({ id }) => id === state.selected)) return state
  // After a change of the filter, selects the first match.
  const row =
    state.filter === before.filter ? listedSessions(before).findIndex(({ id }) => id === state.selected) : 0
  return { ...state, selected: listed[Math.max(0, Math.min(row, listed.length - 1))]!.id }
}

export function sessionInFront(state: State): Sandbox | undefined {
  const page = pageOf(state)
  if (page.at === 'first-run') return undefined
  if (page.at !== 'list') return state.sessions?.get(page.id)
  const listed = listedSessions(state)
  return listed.find(({ id }) => id === state.selected) ?? listed[0]
}

export const selectedCommand = ({ commands = [], selectedCommand }: SessionPage): ExecSummary | undefined =>
  commands.find(({ id }) => id === selectedCommand) ?? commands[0]

export const isOpenTerminal = ({ tty, status }: ExecSummary): boolean => tty && status === 'running'

export function nameInFront(state: State): string {
  const page = pageOf(state)
  const session = sessionInFront(state)
  return session ? nameOf(session) : 'id' in page ? page.id : ''
}

export const nameOf = ({ name, id }: { name: string | null; id: string }): string => name ?? id
