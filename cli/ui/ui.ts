/** Passed to every part of the picker. */
import { createContext, useContext, useSyncExternalStore } from 'react'
import type { Api } from '../core/api.ts'
import type { Settings } from '../core/settings.ts'
import type { State } from './state.ts'
import type { Store } from './store.ts'

export interface Ui {
  store: Store<State>
  /** Replaced by `connect`. */
  api: Api
  settings: Settings
  refresh(): void
  /** Uses other settings from now on. */
  connect(settings: Settings): void
  /** Receives the visible sessions, the selected one first. */
  onVisible(ids: string[]): void
  /** Registers Ink's function that hands over the terminal. */
  onTerminal(suspend: (use: () => Promise<void>) => Promise<void>): void
  handOver(use: () => Promise<void>): Promise<void>
  /** Writes control sequences that neither print nor move the cursor. */
  signal(sequence: string): void
  /** @param code exit code, 0 by default */
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
