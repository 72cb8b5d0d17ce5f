import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { type CliError, describeError, exitCodes } from '../core/errors.ts'
import { describeDestroyed } from './describe.ts'
import { showNotice } from './dialogs.ts'
import { changePage } from './pages.ts'
import { nameOf, pageOf } from './state.ts'
import type { Ui } from './ui.ts'

/** Minimum milliseconds between requests for a session's list of commands. */
export const commandsMs = 10_000
/** Maximum number of requests per refresh for sessions that are no longer active. */
const maxReloads = 5

export const isUnavailable = (error: CliError): boolean => error.exitCode === exitCodes.service

/** Stores the active sessions. Reloads sessions that are no longer active, to find out why they ended. */
export async function takeActive(ui: Ui, active: Sandbox[]): Promise<void> {
  const { store } = ui
  const before = store.get().sessions
  const ids = new Set(active.map(({ id }) => id))
  const missing = [...(before?.values() ?? [])].filter(({ id, state }) => state === 'active' && !ids.has(id))
  putSessions(ui, active)
  if (store.get().showsDestroyed && store.get().destroyedFrom === undefined) await loadDestroyed(ui)
  for (const { id } of missing.slice(0, maxReloads)) {
    const ended = await reloadSession(ui, id)
    if (ended?.state === 'destroyed' && ended.destroy_reason !== 'requested')
      showNotice(ui, `Session ${nameOf(ended)} has ended: ${describeDestroyed(ended)}.`)
  }
}

/** Stores loaded sessions. Never overwrites a destroyed session, because the response may be outdated. */
export function putSessions({ store }: Ui, fresh: Sandbox[]): void {
  const sessions = new Map(store.get().sessions)
  for (const session of fresh) {
    if (sessions.get(session.id)?.state !== 'destroyed') sessions.set(session.id, session)
  }
  store.set({ sessions })
}

async function reloadSession(ui: Ui, id: string): Promise<Sandbox | undefined> {
  try {
    const session = await ui.api.call('getSandbox', { params: { id } })
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
    const page = await ui.api.call('listSandboxes', { query })
    putSessions(ui, page.data)
    ui.store.set({ destroyedFrom: page.next_cursor })
  } finally {
    ui.store.set({ isLoadingMore: false })
  }
}

/**
 * Refreshes the open session's commands. Unless the user asks, does so at most every 10 s, because each
 * request counts toward the account's rate limit for sandbox operations.
 */
export async function refreshPage(ui: Ui, isAsked: boolean): Promise<void> {
  const page = pageOf(ui.store.get())
  if (page.at !== 'session') return
  if (!isAsked && Date.now() - page.askedAt < commandsMs) return
  changePage(ui, page, { askedAt: Date.now() })
  const { id } = page
  try {
    const { data } = await ui.api.call('listExecs', { params: { id }, query: { limit: 100 } })
    changePage(ui, page, { commands: data })
    ui.store.set(({ lastCommands }) => ({ lastCommands: new Map(lastCommands).set(id, data[0] ?? null) }))
  } catch (error) {
    // After a rejected request, the next refresh tries again.
    if (isUnavailable(describeError(error))) throw error
  }
}
