/** A pseudo-terminal with an emulator. Tests read the screen as a user sees it. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Terminal as Emulator } from '@xterm/headless'
import { eventually } from '../support/eventually.ts'
import { openTerminal } from './terminal.ts'

export interface Screen extends Disposable {
  rows(): string[]
  text(): string
  shows(text: string | RegExp, ms?: number): Promise<void>
  hides(text: string | RegExp, ms?: number): Promise<void>
  type(keys: string): void
  resize(rows: number, columns: number): void
  /** All output with escape sequences. */
  raw(): string
  isAlternate(): boolean
  pid(): number
  signal(signal: NodeJS.Signals): void
  emulator: Emulator
  ended: Promise<number | null>
}

export interface Size {
  rows?: number
  columns?: number
}

/** Runs a command on a terminal of this size. */
export function openScreen(
  command: string[],
  env: Record<string, string>,
  { rows = 24, columns = 80 }: Size = {},
): Screen {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-screen-'))
  const facts = join(folder, 'facts')
  const emulator = new Emulator({ rows, cols: columns, allowProposedApi: true, scrollback: 1000 })
  // The shell records its pid and terminal before it executes the command.
  const setUp = `stty rows ${rows} cols ${columns}; echo "$$ $(tty)" > "$0"; exec "$@"`
  const terminal = openTerminal(
    ['sh', '-c', setUp, facts, ...command],
    { TERM: 'xterm-256color', ...env },
    (chunk) => emulator.write(chunk),
  )
  emulator.onData((answer) => terminal.type(answer))
  /** The emulator processes output asynchronously. */
  const read = (code: number | null) =>
    new Promise<number | null>((resolve) => emulator.write('', () => resolve(code)))
  const readFacts = () => readFileSync(facts, 'utf8').trim().split(' ')
  const shown = () => {
    const { active } = emulator.buffer
    return Array.from({ length: emulator.rows }, (_, row) =>
      (active.getLine(active.viewportY + row)?.translateToString(true) ?? '').trimEnd(),
    )
  }
  const has = (text: string | RegExp) => {
    const all = shown().join('\n')
    return typeof text === 'string' ? all.includes(text) : text.test(all)
  }
  const wait = async (text: string | RegExp, is: boolean, ms: number) => {
    await eventually(() => has(text) === is, ms).catch(() => {
      const what = is ? 'not shown' : 'still shown'
      throw new Error(`${text} is ${what}:\n${shown().join('\n')}`)
    })
  }
  return {
    rows: shown,
    text: () => shown().join('\n'),
    shows: (text, ms = 20_000) => wait(text, true, ms),
    hides: (text, ms = 20_000) => wait(text, false, ms),
    type: terminal.type,
    resize(rows, columns) {
      emulator.resize(columns, rows)
      // The kernel then signals the foreground process.
      execFileSync('stty', ['-F', readFacts()[1]!, 'rows', String(rows), 'cols', String(columns)])
    },
    raw: terminal.screen,
    isAlternate: () => emulator.buffer.active.type === 'alternate',
    pid: () => Number(readFacts()[0]),
    signal: (signal) => void process.kill(Number(readFacts()[0]), signal),
    emulator,
    ended: terminal.ended.then(read),
    [Symbol.dispose]() {
      try {
        process.kill(Number(readFacts()[0]), 'SIGKILL')
      } catch {
        // The process has exited.
      }
      rmSync(folder, { recursive: true, force: true })
      emulator.dispose()
    },
  }
}

/** The text that OSC 52 last copied to the clipboard. */
export const clipboardOf = (screen: Screen): string =>
  Buffer.from(screen.raw().split('\u001b]52;c;').at(-1)!.split('\u0007')[0]!, 'base64').toString()
