/** What the picker knows and shows: one value, in one store. */
import type { Account } from '../../shared/contract/account.ts'
import type { ExecSummary } from '../../shared/contract/exec.ts'
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import type { Folder } from './folder.ts'
import type { Form } from './form.ts'
import type { OutputTail } from './output-tail.ts'

export interface State {
  size: { rows: number; columns: number }
  /** The one that is shown last; Esc goes back to the one before. */
  pages: Page[]
  dialog: Dialog | undefined
  notice: Notice | undefined
  /** Where the service is, once that is known. */
  address: string | undefined
  /** The session that commands use without --session: its id or its name, if one is chosen. */
  chosen: string | undefined

  account: Account | undefined
  /** By id, also those that have ended while we looked; undefined until the first answer. */
  sessions: ReadonlyMap<string, Sandbox> | undefined
  /** Destroyed sessions come page by page: the cursor of the next page, null after the last. */
  destroyedFrom: string | null | undefined
  isLoadingMore: boolean
  /** The newest command of each session that was looked at; null where there is none. */
  lastCommands: ReadonlyMap<string, ExecSummary | null>
  trouble: Trouble | undefined

  showsDestroyed: boolean
  filter: string
  /** What was run in each session, the newest last. */
  ran: ReadonlyMap<string, string[]>
  opening: Opening | undefined
  selected: string | undefined
}

/** The service does not answer as it should. */
export interface Trouble {
  /** Not there, or not itself; else it refuses. */
  isAway: boolean
  since: number
  message: string
}

export interface Opening {
  program: 'shell' | 'pager'
  /** What is typed into it already, as a terminal sends it. */
  typed: string
}

export interface Notice {
  text: string
  isError: boolean
}

export type Page = FirstRunPage | ListPage | SessionPage | OutputPage
interface AnyPage {
  /** What a page is known by while all else of it changes; two pages may show the same. */
  pageId: number
}
export interface FirstRunPage extends AnyPage {
  at: 'first-run'
  step: 'address' | 'way' | 'sign-up' | 'key'
  address: string
  /** The line of `way` that is stood on. */
  way: number
}
export interface ListPage extends AnyPage {
  at: 'list'
}
export interface SessionPage extends AnyPage {
  at: 'session'
  id: string
  tab: 'commands' | 'files'
  /** Newest first; undefined until the first answer. */
  commands: ExecSummary[] | undefined
  /** When they were asked for, by our clock. */
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
  /** In words, once it is known. */
  status: string
  isRunning: boolean
  isInterrupted: boolean
  /** The number of the line on the first row, or the end as it grows. */
  top: number | 'end'
}

export type Dialog =
  | { kind: 'form'; form: Form; isPrompt: boolean }
  | { kind: 'confirm'; question: string; onYes: () => void }
  /** It waits for Enter, because what is typed was meant for something else. */
  | { kind: 'told'; text: string }
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

export const pageOf = (state: State): Page => state.pages.at(-1)!

type Sessions = NonNullable<State['sessions']>
/** A cache: the same list is asked for many times a frame. */
const listed = new WeakMap<Sessions, { key: string; sessions: Sandbox[] }>()

/** Newest first, those that the filter lets through. */
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

/**
 * The selection is a session, not a row: whatever appears or moves, it stays. When its session leaves the list, the one
 * that takes its row is selected.
 */
export function keepSelection(state: State, before: State): State {
  const isSame = (['sessions', 'showsDestroyed', 'filter', 'selected'] as const).every(
    (key) => state[key] === before[key],
  )
  if (isSame) return state
  const listed = listedSessions(state)
  if (listed.length === 0 || listed.some(({ id }) => id === state.selected)) return state
  const row = Math.max(0, rowBefore(state, before))
  return { ...state, selected: listed[Math.min(row, listed.length - 1)]!.id }
}

/** Another filter begins at the first row. */
const rowBefore = ({ filter, selected }: State, before: State): number =>
  filter === before.filter ? listedSessions(before).findIndex(({ id }) => id === selected) : 0

/** The session that keys act on: that of the page, or the selected one. */
export function sessionInFront(state: State): Sandbox | undefined {
  const page = pageOf(state)
  if (page.at === 'first-run') return undefined
  if (page.at !== 'list') return state.sessions?.get(page.id)
  const listed = listedSessions(state)
  return listed.find(({ id }) => id === state.selected) ?? listed[0]
}

export function nameInFront(state: State): string {
  const page = pageOf(state)
  const session = sessionInFront(state)
  return session ? nameOf(session) : 'id' in page ? page.id : ''
}

export const nameOf = ({ name, id }: { name: string | null; id: string }): string => name ?? id
