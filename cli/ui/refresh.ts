/** Refreshes the store every few seconds, and reports when the service does not respond. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Reply } from '../core/api.ts'
import { CliError, describeError, exitCodes } from '../core/errors.ts'
import { listActive } from '../core/session.ts'
import { serviceNow } from '../core/times.ts'
import { showNotice } from './dialogs.ts'
import { openFirstRun } from './first-run.ts'
import { isUnavailable, refreshPage, takeActive } from './load-sessions.ts'
import { findPage } from './pages.ts'
import type { Trouble } from './state.ts'
import type { Ui } from './ui.ts'

/** Milliseconds between the end of a refresh and the start of the next. */
const pauseMs = 3_000
/** Milliseconds after which a missing response is reported. */
const slowMs = 5_000

export function startRefreshing(ui: Ui) {
  let stopped = false
  let pause = new AbortController()
  let wanted = false
  const run = async () => {
    while (!stopped) {
      const isAsked = wanted
      wanted = false
      await refresh(ui, isAsked)
      if (stopped || wanted) continue
      pause = new AbortController()
      await sleep(pauseMs, undefined, { signal: pause.signal }).catch(() => {})
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
    const [account, active] = await Promise.all([api.call('getAccount', {}), listActive(api)])
    // The settings have changed since the request was sent.
    if (ui.api !== api) return
    assertAccount(account)
    clearTimeout(slow)
    if (store.get().trouble) showNotice(ui, 'The service is available again.')
    store.set({ account, trouble: undefined })
    await takeActive(ui, active)
    await refreshPage(ui, isAsked)
  } catch (error) {
    if (ui.api === api) handleError(ui, describeError(error))
  } finally {
    clearTimeout(slow)
  }
}

/** Rejects a response that lacks fields the views need, because it is not from a Sandlot service. */
function assertAccount({ concurrent, usage }: Partial<Reply<'getAccount'>>): void {
  if (concurrent && usage) return
  throw new CliError('unexpected_answer', 'The reply is not from a Sandlot service. Check the address.')
}

function handleError(ui: Ui, error: CliError) {
  const isRefused = error.exitCode === exitCodes.credentials && error.code !== 'account_suspended'
  if (isRefused) return openFirstRun(ui, error.message)
  setTrouble(ui, { since: serviceNow(), isUnavailable: isUnavailable(error), message: error.message })
}

function setTrouble({ store }: Ui, fresh: Trouble): void {
  store.set(({ trouble }) => ({ trouble: { ...fresh, since: trouble?.since ?? fresh.since } }))
}
