import type { Api } from '../core/api.ts'
import type { Settings } from '../core/settings.ts'
import type { Store } from './state.ts'

export interface Ui {
  store: Store
  /** API client with the current settings. `connect` replaces the client. */
  api: Api
  settings: Settings
  refresh(): void
  connect(settings: Settings): void
  /** Loads the last commands of the visible sessions. @param ids session ids, the selected one first */
  onVisible(ids: string[]): void
  onTerminal(suspend: (use: () => Promise<void>) => Promise<void>): void
  /** Gives the terminal to another program while `use` runs. */
  handOver(use: () => Promise<void>): Promise<void>
  /** Writes escape sequences that neither print text nor move the cursor. */
  write(sequence: string): void
  quit(code?: number): void
}
