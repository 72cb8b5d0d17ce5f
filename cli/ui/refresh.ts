/** Refreshes the store every few seconds, and reports when the service does not respond. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Reply } from '../core/api.ts'
import { CliError, describeError, exitCodes } from '../core/errors.ts'
import { serviceNow } from '../core/times.ts'
import { openFirstRun } from './first-run.ts'
import { answerMs, isUnavailable, listActive, refreshPage, takeActive } from './load-sessions.ts'
import { showNotice } from './notices.ts'
import { findPage } from './pages.ts'
import type { Trouble } from './state.ts'
import type { Ui } from './ui.ts'

const everyMs = 3_000
/** After a slow refresh, the pause is this multiple of the refresh's duration, but at most {@link maxMs}. */
const restFactor = 3
const maxMs = 15_000
/** Milliseconds until a missing response is reported. */
const slowMs = 5_000

export function startRefreshing(ui: Ui) {
  let stopped = false
  let pause = new AbortController()
  let wanted = false
  const run = async () => {
    while (!stopped) {
      const isAsked = wanted
      wanted = false
      const began = performance.now()
      await refresh(ui, isAsked)
      if (stopped) return
      if (wanted) continue
      pause = new AbortController()
      const tookMs = performance.now() - began
      const ms = Math.max(everyMs, Math.min(tookMs * restFactor, maxMs))
      await sleep(ms, undefined, { signal: pause.signal }).catch(() => {})
    }
  }
  void run()
  return {
    now() {
      wanted = true
      pause.abort()
    },
    stop() {
      stopped = true
      pause.abort()
    },
  }
}

async function refresh(ui: Ui, isAsked: boolean): Promise<void> {
  const { store } = ui
  if (findPage(store.get(), 'first-run')) return
  const api = ui.api
  const began = serviceNow()
  const slow = setTimeout(
    () => setTrouble(ui, { since: began, isUnavailable: true, message: 'The service has not replied yet.' }),
    slowMs,
  )
  try {
    const [account, active] = await Promise.all([
      api.call('getAccount', { timeoutMs: answerMs }),
      listActive(ui),
    ])
    // The settings have changed since the request was sent.
    if (ui.api !== api) return
    assertAccount(account)
    clearTimeout(slow)
    if (store.get().trouble) showNotice(ui, 'The service is available again.')
    store.set({ account, trouble: undefined })
    await takeActive(ui, active)
    await refreshPage(ui, isAsked)
  } catch (error) {
    if (ui.api === api) handleTrouble(ui, error)
  } finally {
    clearTimeout(slow)
  }
}

/**
 * Checks that the response has the fields required by the views. A server other than Sandlot would not return
 * them.
 */
function assertAccount({ concurrent, usage }: Partial<Reply<'getAccount'>>): void {
  if (concurrent && usage) return
  throw new CliError('unexpected_answer', 'The server at this address is not a Sandlot service.')
}

function handleTrouble(ui: Ui, thrown: unknown) {
  const error = describeError(thrown)
  const isRefused = error.exitCode === exitCodes.credentials && error.code !== 'account_suspended'
  if (isRefused) return openFirstRun(ui, error.message)
  setTrouble(ui, { since: serviceNow(), isUnavailable: isUnavailable(error), message: error.message })
}

function setTrouble({ store }: Ui, fresh: Trouble): void {
  store.set(({ trouble }) => ({ trouble: { ...fresh, since: trouble?.since ?? fresh.since } }))
}
