/** The known sessions, and how the service is asked for them. */
import type { ExecSummary } from '../../shared/contract/exec.ts'
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { allPages } from '../core/api.ts'
import { type CliError, describeError, exitCodes } from '../core/errors.ts'
import { changeOpen, changePage } from './pages.ts'
import { nameOf, pageOf } from './state.ts'
import { tell } from './tell.ts'
import type { Ui } from './ui.ts'
import { whyEnded } from './words.ts'

/** How long an answer may take. */
export const answerMs = 20_000
/** How often the commands of a session are asked for. */
export const commandsMs = 10_000
/** How many sessions that ended at once are looked up in one refresh. */
const mostEnded = 5

/** The service is not there, or not itself. */
export const isAway = (error: CliError): boolean => error.exitCode === exitCodes.service

export function listActive({ api }: Ui): Promise<Sandbox[]> {
  return allPages((page) =>
    api.call('listSandboxes', { query: { state: 'active', ...page }, timeoutMs: answerMs }),
  )
}

/** Stores the active sessions and looks up why missing ones ended. */
export async function takeActive(ui: Ui, active: Sandbox[]): Promise<void> {
  const { store } = ui
  const before = store.get().sessions
  const ids = new Set(active.map(({ id }) => id))
  const missing = [...(before?.values() ?? [])].filter(({ id, state }) => state === 'active' && !ids.has(id))
  putSessions(ui, active)
  if (store.get().showsDestroyed && store.get().destroyedFrom === undefined) await loadDestroyed(ui)
  for (const { id } of missing.slice(0, mostEnded)) {
    const ended = await lookAgain(ui, id)
    if (ended?.state === 'destroyed' && ended.destroy_reason !== 'requested')
      tell(ui, `${nameOf(ended)} has ended: ${whyEnded(ended)}.`)
  }
}

/** Merges an answer into the known sessions. An ended one stays ended: the answer may be older than that. */
export function putSessions({ store }: Ui, fresh: Sandbox[]): void {
  const sessions = new Map(store.get().sessions)
  for (const session of fresh) {
    if (sessions.get(session.id)?.state !== 'destroyed') sessions.set(session.id, session)
  }
  store.set({ sessions })
}

async function lookAgain(ui: Ui, id: string): Promise<Sandbox | undefined> {
  try {
    const session = await ui.api.call('getSandbox', { params: { id }, timeoutMs: answerMs })
    putSessions(ui, [session])
    return session
  } catch (error) {
    if (describeError(error).code !== 'not_found') throw error
    const sessions = new Map(ui.store.get().sessions)
    sessions.delete(id)
    ui.store.set({ sessions })
    return undefined
  }
}

export async function loadDestroyed(ui: Ui): Promise<void> {
  const { destroyedFrom } = ui.store.get()
  if (destroyedFrom === null || ui.store.get().isLoadingMore) return
  ui.store.set({ isLoadingMore: true })
  const query = { state: 'destroyed', limit: 100, cursor: destroyedFrom } as const
  try {
    const page = await ui.api.call('listSandboxes', { query, timeoutMs: answerMs })
    putSessions(ui, page.data)
    ui.store.set({ destroyedFrom: page.next_cursor })
  } finally {
    ui.store.set({ isLoadingMore: false })
  }
}

/**
 * What the open session's page shows beside the session. That comes out of the rate limit of commands, so it is asked
 * for less often.
 * @param isAsked whether the user has done something
 */
export async function refreshPage(ui: Ui, isAsked: boolean): Promise<void> {
  const page = pageOf(ui.store.get())
  if (page.at !== 'session') return
  if (!isAsked && Date.now() - page.askedAt < commandsMs) return
  changePage(ui, page, { askedAt: Date.now() })
  const data = await listCommands(ui, page.id)
  if (!data) return
  changeOpen(ui, 'session', (open) => (open.id === page.id ? { commands: data } : {}))
  ui.store.set(({ lastCommands }) => ({ lastCommands: new Map(lastCommands).set(page.id, data[0] ?? null) }))
}

/** @returns undefined when a rate limit refuses it: the next refresh will do */
async function listCommands({ api }: Ui, id: string): Promise<ExecSummary[] | undefined> {
  try {
    const query = { limit: 100 }
    return (await api.call('listExecs', { params: { id }, query, timeoutMs: answerMs })).data
  } catch (error) {
    if (isAway(describeError(error))) throw error
    return undefined
  }
}
