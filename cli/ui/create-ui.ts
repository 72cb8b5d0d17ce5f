import { createApi } from '../core/api.ts'
import { chosenSession } from '../core/session.ts'
import type { Settings } from '../core/settings.ts'
import { errorText } from './dialogs.ts'
import { openFirstRun } from './first-run.ts'
import { watchLastCommands } from './last-commands.ts'
import { startRefreshing } from './refresh.ts'
import { createStore, firstState } from './state.ts'
import type { Ui } from './ui.ts'

interface Terminal {
  /** Suspends the picker's signal handlers while `use` runs another program on the terminal. */
  leaveTo(use: () => Promise<void>): Promise<void>
  write(sequence: string): void
  quit(code: number): void
}

/** Creates the picker's state and services, and sends the first requests before anything is drawn. */
export async function createUi(settings: Settings, terminal: Terminal): Promise<Ui> {
  const store = createStore()
  let suspend = (use: () => Promise<void>) => use()
  const ui: Ui = {
    store,
    settings,
    api: createApi(settings),
    refresh: () => refreshing.now(),
    connect(settings) {
      ui.settings = settings
      ui.api = createApi(settings)
      store.set({ ...firstState, size: store.get().size, address: store.get().address })
      void readSettings(ui)
      refreshing.now()
    },
    onVisible: (ids) => lastCommands.setVisible(ids),
    onTerminal(by) {
      suspend = by
    },
    handOver: (use) =>
      suspend(async () => {
        try {
          await terminal.leaveTo(use)
        } finally {
          terminal.write(resetSequence(store.get().size.columns))
        }
      }),
    write: terminal.write,
    quit(code = 0) {
      refreshing.stop()
      lastCommands.stop()
      terminal.quit(code)
    },
  }
  await readSettings(ui)
  const { address } = store.get()
  if ((await settings.findKey(address)) === undefined || address === undefined)
    openFirstRun(ui, await explainMissingKey(settings, address))
  const refreshing = startRefreshing(ui)
  const lastCommands = watchLastCommands(ui)
  return ui
}

/** Resets colors, character set and scroll region, and moves the cursor to column 1, where Ink expects it. */
const resetSequence = (columns: number): string =>
  `\u001b[m\u001b(B\u000f\u001b7\u001b[r\u001b8${' '.repeat(Math.max(0, columns - 1))}\r`

/** Reads the service's address and the current session. @throws {CliError} if the address is not allowed */
async function readSettings({ store, settings }: Ui): Promise<void> {
  store.set({ chosen: (await chosenSession(settings))?.value })
  if ((await settings.find('url')) !== undefined) store.set({ address: await settings.baseUrl() })
}

/** Explains why none of the saved API keys applies to the address. */
async function explainMissingKey(settings: Settings, address?: string): Promise<string | undefined> {
  if (address === undefined || (await settings.savedKeys()).length === 0) return undefined
  return settings.apiKey(address).then(() => undefined, errorText)
}
