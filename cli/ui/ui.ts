/** What every part of the picker gets: the store, the service and the terminal. */
import { createContext, useContext, useSyncExternalStore } from 'react'
import type { Api } from '../core/api.ts'
import type { Settings } from '../core/settings.ts'
import type { State } from './state.ts'
import type { Store } from './store.ts'

export interface Ui {
  store: Store<State>
  /** Changes when the first-run page is done. */
  api: Api
  settings: Settings
  refresh(): void
  /** Replaces the settings of this run. */
  connect(settings: Settings): void
  /** The list calls it with the sessions on the screen, the selected one first. */
  onVisible(ids: string[]): void
  /** The view sets how the terminal is handed over. */
  onTerminal(suspend: (use: () => Promise<void>) => Promise<void>): void
  handOver(use: () => Promise<void>): Promise<void>
  /** Writes control sequences that neither move the cursor nor show anything. */
  signal(sequence: string): void
  /** @param code of the exit, 0 unless told */
  quit(code?: number): void
}

export const UiContext = createContext<Ui | undefined>(undefined)

export function useUi(): Ui {
  const ui = useContext(UiContext)
  if (ui === undefined) throw new Error('There is no UiContext around this.')
  return ui
}

export function useUiState(): State {
  const { store } = useUi()
  return useSyncExternalStore(store.subscribe, store.get)
}
