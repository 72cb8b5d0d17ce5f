/** The help, as lines: from the table of keys. */
import { type Key, keysOf, type Where, whereIs } from './keys.ts'
import type { State } from './state.ts'

const titles: Record<Where, string> = {
  'first-run': 'Keys',
  list: 'Keys of the list',
  commands: "Keys of the session's commands",
  files: "Keys of the session's files",
  output: 'Keys of the output',
  file: 'Keys of the file',
}

export const helpTitle = (state: State): string => titles[whereIs(state)]

export const helpLines = (state: State): Key[] => keysOf(whereIs(state))
