/** Loads the last command of each visible session, with one request at a time. */
import { describeError } from '../core/errors.ts'
import { commandsMs } from './load-sessions.ts'
import { isOn } from './pages.ts'
import type { State } from './state.ts'
import type { Ui } from './ui.ts'

/** Delay, in milliseconds, between scrolling the list and the next request. */
const restMs = 150
/**
 * Reload interval of the selected session's last command, in milliseconds. For other sessions, the last command is
 * loaded only once.
 */
const againMs = commandsMs

export function watchLastCommands(ui: Ui) {
  const askedAt = new Map<string, number>()
  let visible: string[] = []
  let recent: number[] = []
  let timer: NodeJS.Timeout | undefined
  let isAsking = false

  async function askNext(): Promise<void> {
    if (isAsking) return
    const id = next(ui.store.get())
    if (id === undefined || !mayAsk()) return wait(againMs)
    isAsking = true
    askedAt.set(id, Date.now())
    recent.push(Date.now())
    const pauseMs = await ask(ui, id)
    isAsking = false
    wait(pauseMs)
  }

  /** Reports whether a request is allowed. The picker uses at most a quarter of the account's rate limit. */
  function mayAsk(): boolean {
    recent = recent.filter((at) => Date.now() - at < 60_000)
    const { account } = ui.store.get()
    return recent.length < (account?.limits.sandbox_ops_per_minute ?? 0) / 4
  }

  function next(state: State): string | undefined {
    if (!isOn(state, 'list') || state.trouble) return undefined
    const isDue = (id: string, index: number) => {
      const at = askedAt.get(id)
      if (at === undefined) return true
      return index === 0 && Date.now() - at > againMs && state.sessions?.get(id)?.state === 'active'
    }
    return visible.find(isDue)
  }

  const wait = (ms: number) => {
    clearTimeout(timer)
    timer = setTimeout(() => void askNext(), ms)
  }
  return {
    /**
     * Sets the sessions to load.
     * @param ids ids of the visible sessions, with the selected session first
     */
    setVisible(ids: string[]) {
      visible = ids
      if (!isAsking) wait(restMs)
    },
    stop: () => clearTimeout(timer),
  }
}

/** Loads one session's last command. Returns the delay before the next request, in milliseconds. */
async function ask({ api, store }: Ui, id: string): Promise<number> {
  try {
    const { data } = await api.call('listExecs', { params: { id }, query: { limit: 1 } })
    store.set(({ lastCommands }) => ({ lastCommands: new Map(lastCommands).set(id, data[0] ?? null) }))
    return 0
  } catch (error) {
    // The column is optional, and the list itself reports that the service is unavailable.
    const seconds = Number(describeError(error).details.retry_after)
    return Number.isFinite(seconds) ? seconds * 1000 : restMs * 10
  }
}
