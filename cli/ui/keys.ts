/** The picker's keys, used for key handling, help, hints and equivalent command lines. */
import { shellLine } from '../../shared/contract/shell-words.ts'
import { askCommand } from './ask-command.ts'
import {
  editArguments,
  fileInFront,
  logsArguments,
  onSession,
  pageArguments,
  rerunArguments,
  rowInFront,
  viewArguments,
  withId,
} from './command-lines.ts'
import { editSelected, enter, leave, reloadFolder, showFiles } from './files.ts'
import { moveMethod, stepBack, takeMethod } from './first-run.ts'
import { move, type Step } from './moving.ts'
import { interrupt, interruptOrQuit, openCommand } from './outputs.ts'
import { pageOutput } from './pager.ts'
import { changeOpen, goBack } from './pages.ts'
import {
  askFilter,
  askNewSession,
  askToDestroy,
  copyId,
  openSession,
  toggleDestroyed,
  useSession,
} from './sessions.ts'
import { openShell } from './shell.ts'
import { suspendPicker } from './signals.ts'
import { pageOf, type State, sessionInFront } from './state.ts'
import type { Ui } from './ui.ts'

/** Where keys apply. Each tab of the session page counts as a separate page. */
export type Where = 'first-run' | 'list' | 'commands' | 'files' | 'output'

export interface Key {
  /** Key names, as defined in `press.ts`. */
  keys: string[]
  /** Keys as displayed. Default: the first key. */
  shown: string
  label: string
  /** Label in the hints. Keys without a short label have no hint. */
  short?: string
  where: Where[]
  run(ui: Ui): void
  /** Returns whether the key applies. By default, it always applies. */
  applies?(state: State): boolean
  /** Returns the arguments of the equivalent `sandlot` command. */
  commandLine?(state: State): string[] | undefined
}

const rows: Where[] = ['list', 'commands', 'files']
const inSession: Where[] = [...rows, 'output']
const everywhere: Where[] = ['first-run', ...inSession]

const moves: { keys: string[]; shown: string; label: string; step: Step }[] = [
  { keys: ['up', 'k'], shown: '↑ k', label: 'up', step: -1 },
  { keys: ['down', 'j'], shown: '↓ j', label: 'down', step: 1 },
  { keys: ['pageup', 'ctrl+b'], shown: 'PgUp', label: 'a screen up', step: '-screen' },
  { keys: ['pagedown', 'ctrl+f', ' '], shown: 'PgDn', label: 'a screen down', step: '+screen' },
  { keys: ['home', 'g'], shown: 'g Home', label: 'to the first', step: 'first' },
  { keys: ['end', 'G'], shown: 'G End', label: 'to the last', step: 'last' },
]

const table: (Omit<Key, 'shown'> & { shown?: string })[] = [
  ...moves.map(({ step, ...key }) => ({ ...key, where: inSession, run: (ui: Ui) => move(ui, step) })),
  { keys: ['up', 'k'], shown: '↑ k', label: 'up', where: ['first-run'], run: (ui) => moveMethod(ui, -1) },
  { keys: ['down', 'j'], shown: '↓ j', label: 'down', where: ['first-run'], run: (ui) => moveMethod(ui, 1) },
  { keys: ['return'], shown: 'Enter', label: 'choose', where: ['first-run'], run: takeMethod },
  {
    keys: ['return', 'right', 'l'],
    shown: 'Enter',
    label: 'open the session',
    short: 'open',
    where: ['list'],
    run: (ui) => void openSession(ui),
    applies: hasSession,
    commandLine: (state) => withId(state, ['session', 'get']),
  },
  {
    keys: ['return', 'right', 'l'],
    shown: 'Enter',
    label: 'show the output of the command',
    short: 'output',
    where: ['commands'],
    run: openCommand,
    applies: (state) => rerunArguments(state) !== undefined,
    commandLine: rerunArguments,
  },
  {
    keys: ['return', 'right', 'l', 'v'],
    shown: 'Enter v',
    label: 'open the folder, or the file in $PAGER',
    short: 'open',
    where: ['files'],
    run: enter,
    applies: (state) => rowInFront(state) !== undefined,
    commandLine: viewArguments,
  },
  { keys: ['left', 'h'], shown: '← h', label: 'parent folder', where: ['files'], run: leave },
  {
    keys: ['n'],
    label: 'new session',
    short: 'new',
    where: ['list'],
    run: askNewSession,
    commandLine: () => ['session', 'create'],
  },
  {
    keys: ['v'],
    label: 'open the whole output in $PAGER',
    short: 'pager',
    where: ['output'],
    run: pageOutput,
    applies: (state) => logsArguments(state) !== undefined,
    commandLine: logsArguments,
  },
  {
    keys: ['i'],
    label: 'interrupt the command',
    short: 'interrupt',
    where: ['output'],
    run: interrupt,
    applies: isRunning,
  },
  {
    keys: ['s'],
    label: 'open a shell in the session',
    short: 'shell',
    where: inSession,
    run: (ui) => void openShell(ui),
    applies: hasActive,
    commandLine: (state) => onSession(state, ['exec', '-it'], ['--', 'sh']),
  },
  {
    keys: ['x'],
    label: 'run a command',
    short: 'run',
    where: inSession,
    run: askCommand,
    applies: hasActive,
    commandLine: (state) => onSession(state, ['exec'], ['-c', 'COMMAND']),
  },
  {
    keys: ['f'],
    label: 'files of the session',
    short: 'files',
    where: ['list', 'commands'],
    run: showFiles,
    applies: hasActive,
    commandLine: (state) => onSession(state, ['files', 'ls']),
  },
  {
    keys: ['e'],
    label: 'edit the file in $EDITOR',
    short: 'edit',
    where: ['files'],
    run: editSelected,
    applies: (state) => hasActive(state) && fileInFront(state) !== undefined,
    commandLine: editArguments,
  },
  {
    keys: ['d'],
    label: 'destroy the session (asks)',
    short: 'destroy',
    where: rows,
    run: askToDestroy,
    applies: hasActive,
    commandLine: (state) => withId(state, ['session', 'rm', '--yes']),
  },
  {
    keys: ['tab', 'shift+tab'],
    shown: 'Tab',
    label: 'switch between commands and files',
    short: 'tab',
    where: ['commands', 'files'],
    run: switchTab,
    applies: (state) => whereIs(state) === 'files' || hasActive(state),
  },
  {
    keys: ['/'],
    label: 'filter the list',
    short: 'filter',
    where: ['list'],
    run: askFilter,
    applies: ({ sessions }) => (sessions?.size ?? 0) > 0,
  },
  {
    keys: ['u'],
    label: 'make this the current session',
    where: rows,
    run: useSession,
    applies: hasActive,
    commandLine: (state) => withId(state, ['session', 'use']),
  },
  {
    keys: ['c'],
    label: 'copy the equivalent command line',
    short: 'copy',
    where: inSession,
    run: askWhichLine,
    commandLine: pageArguments,
  },
  { keys: ['r', 'ctrl+r'], label: 'refresh', where: rows, run: refresh },
  { keys: ['a'], label: 'also show destroyed sessions', short: 'all', where: ['list'], run: toggleDestroyed },
  { keys: ['y'], label: 'copy the id', short: 'id', where: inSession, run: copyId, applies: hasSession },
  {
    keys: ['escape'],
    shown: 'Esc',
    label: 'clear the filter',
    short: 'no filter',
    where: ['list'],
    run: ({ store }) => store.get().filter !== '' && store.set({ filter: '', notice: undefined }),
    applies: ({ filter }) => filter !== '',
  },
  {
    keys: ['?', 'f1'],
    label: 'help',
    short: 'help',
    where: everywhere,
    run: ({ store }) => store.set({ dialog: { kind: 'help', top: 0 } }),
  },
  { keys: ['escape', 'q'], shown: 'Esc q', label: 'go back', where: ['first-run'], run: stepBack },
  { keys: ['q'], label: 'quit', short: 'quit', where: ['list'], run: (ui) => ui.quit() },
  {
    keys: ['escape', 'q'],
    shown: 'Esc q',
    label: 'go back',
    short: 'back',
    where: ['commands', 'files', 'output'],
    run: goBack,
  },
  {
    keys: ['ctrl+c'],
    shown: 'Ctrl-C',
    label: 'interrupt the command; again to leave its page',
    where: ['output'],
    run: interruptOrQuit,
  },
  { keys: ['ctrl+c'], shown: 'Ctrl-C', label: 'quit', where: ['first-run', ...rows], run: interruptOrQuit },
  {
    keys: ['ctrl+z'],
    shown: 'Ctrl-Z',
    label: 'suspend the picker; fg resumes it',
    where: everywhere,
    run: suspendPicker,
  },
]

export const keys: Key[] = table.map((key) => ({ shown: key.keys[0]!, ...key }))

function hasActive(state: State): boolean {
  return sessionInFront(state)?.state === 'active'
}

function hasSession(state: State): boolean {
  return sessionInFront(state) !== undefined
}

function isRunning(state: State): boolean {
  const page = pageOf(state)
  return page.at === 'output' && page.isRunning && hasActive(state)
}

function switchTab(ui: Ui) {
  const page = pageOf(ui.store.get())
  if (page.at !== 'session') return
  if (page.tab === 'commands') return showFiles(ui)
  changeOpen(ui, 'session', () => ({ tab: 'commands' }))
}

function refresh(ui: Ui) {
  if (whereIs(ui.store.get()) === 'files') return reloadFolder(ui)
  ui.refresh()
}

export function whereIs(state: State): Where {
  const page = pageOf(state)
  return page.at === 'session' ? page.tab : page.at
}

export const keysOf = (where: Where): Key[] => keys.filter((key) => key.where.includes(where))

export const applicableKeys = (state: State): Key[] =>
  keysOf(whereIs(state)).filter(({ applies }) => applies?.(state) ?? true)

export function commandLines(state: State): { key: Key; text: string }[] {
  return applicableKeys(state).flatMap((key) => {
    const words = key.commandLine?.(state)
    return words === undefined ? [] : [{ key, text: shellLine('sandlot', ...words) }]
  })
}

/** Lists command lines to copy. Selects the one for the open page, so that pressing `c` twice copies it. */
function askWhichLine({ store }: Ui): void {
  const at = commandLines(store.get()).findIndex(({ key }) => key.keys.includes('c'))
  store.set({ dialog: { kind: 'copy', at: Math.max(0, at) }, notice: undefined })
}
