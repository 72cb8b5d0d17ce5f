import { createContext, useContext, useSyncExternalStore } from 'react'
import type { Api } from '../core/api.ts'
import type { Settings } from '../core/settings.ts'
import type { State } from './state.ts'
import type { Store } from './store.ts'

export interface Ui {
  store: Store<State>
  /** API client with the current settings. `connect` replaces this client. */
  api: Api
  settings: Settings
  refresh(): void
  connect(settings: Settings): void
  /** @param ids visible sessions, with the selected session first */
  onVisible(ids: string[]): void
  /** Registers the Ink function that gives the terminal to another program. */
  onTerminal(suspend: (use: () => Promise<void>) => Promise<void>): void
  handOver(use: () => Promise<void>): Promise<void>
  /** Writes escape sequences that neither print text nor move the cursor. */
  signal(sequence: string): void
  quit(code?: number): void
}

export const UiContext = createContext<Ui | undefined>(undefined)

export function useUi(): Ui {
  const ui = useContext(UiContext)
  if (ui === undefined) throw new Error('useUi needs a UiContext.')
  return ui
}

export function useUiState(): State {
  const { store } = useUi()
  return useSyncExternalStore(store.subscribe, store.get)
}
