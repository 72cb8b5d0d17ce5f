/** A pseudo-terminal that `script` of util-linux provides. */
import { spawn } from 'node:child_process'
import { quote } from '../../shared/contract/shell-words.ts'
import { patient } from '../support/eventually.ts'

/** Shorter than the test timeout, so that a failure shows the screen. */
const retryBudgetMs = patient(30_000)

export interface Terminal {
  screen(): string
  /** Waits for `text` after the matches of earlier calls. */
  shows(text: string): Promise<void>
  type(keys: string): void
  ended: Promise<number | null>
}

export function openTerminal(
  command: string[],
  env: Record<string, string>,
  onOutput: (chunk: Buffer) => void = () => {},
): Terminal {
  const line = command.map(quote).join(' ')
  const child = spawn('script', ['-qfec', line, '/dev/null'], {
    env: { TERM: 'xterm', SHELL: '/bin/sh', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let screen = ''
  let seen = 0
  let look = () => {}
  child.stdout.on('data', (chunk: Buffer) => {
    screen += chunk
    onOutput(chunk)
    look()
  })
  child.stdin.on('error', () => {})
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
  return {
    screen: () => screen,
    shows: (text) =>
      new Promise((resolve, reject) => {
        const fail = (why: string) => reject(new Error(`${why} without showing ${text}:\n${screen}`))
        const timer = setTimeout(fail, retryBudgetMs, `${retryBudgetMs / 1000} s went by`)
        look = () => {
          const at = screen.indexOf(text, seen)
          if (at < 0) return
          seen = at + text.length
          clearTimeout(timer)
          resolve()
        }
        look()
        void ended.then(() => fail('The program ended'), reject).finally(() => clearTimeout(timer))
      }),
    type: (keys) => child.stdin.write(keys),
    ended,
  }
}
