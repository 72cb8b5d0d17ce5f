/** Loads the last command of each visible session, one request at a time. */
import { describeError } from '../core/errors.ts'
import { commandsMs } from './load-sessions.ts'
import { pageOf, type State } from './state.ts'
import type { Ui } from './ui.ts'

/** Milliseconds to wait after scrolling before the next request. */
const restMs = 150

export function watchLastCommands(ui: Ui) {
  const askedAt = new Map<string, number>()
  let visible: string[] = []
  let recent: number[] = []
  let timer: NodeJS.Timeout | undefined
  let isAsking = false

  async function askNext(): Promise<void> {
    if (isAsking) return
    const id = next(ui.store.get())
    if (id === undefined || !mayAsk()) return wait(commandsMs)
    isAsking = true
    askedAt.set(id, Date.now())
    recent.push(Date.now())
    const pauseMs = await ask(ui, id)
    isAsking = false
    wait(pauseMs)
  }

  /** Returns whether another request is allowed. These requests use up to a quarter of the rate limit. */
  function mayAsk(): boolean {
    recent = recent.filter((at) => Date.now() - at < 60_000)
    const { account } = ui.store.get()
    return recent.length < (account?.limits.sandbox_ops_per_minute ?? 0) / 4
  }

  function next(state: State): string | undefined {
    if (pageOf(state).at !== 'list' || state.trouble) return undefined
    const isDue = (id: string, index: number) => {
      const at = askedAt.get(id)
      if (at === undefined) return true
      // Only the selected session's command is loaded again.
      return index === 0 && Date.now() - at > commandsMs && state.sessions?.get(id)?.state === 'active'
    }
    return visible.find(isDue)
  }

  const wait = (ms: number) => {
    clearTimeout(timer)
    timer = setTimeout(() => void askNext(), ms)
  }
  return {
    setVisible(ids: string[]) {
      visible = ids
      if (!isAsking) wait(restMs)
    },
    stop: () => clearTimeout(timer),
  }
}

/** Loads a session's last command. @returns the milliseconds to wait before the next request */
async function ask({ api, store }: Ui, id: string): Promise<number> {
  try {
    const { data } = await api.call('listExecs', { params: { id }, query: { limit: 1 } })
    store.set(({ lastCommands }) => ({ lastCommands: new Map(lastCommands).set(id, data[0] ?? null) }))
    return 0
  } catch (error) {
    // Not reported here: the column is optional, and the list reports that the service is unavailable.
    const seconds = Number(describeError(error).details.retry_after)
    return Number.isFinite(seconds) ? seconds * 1000 : restMs * 10
  }
}
