/** A pseudo-terminal, by util-linux' `script`: what a person would see, and keys to type into it. */
import { spawn } from 'node:child_process'

export interface Terminal {
  /** All that was shown so far. */
  screen(): string
  /** Waits until `text` is shown after what earlier calls waited for. */
  shows(text: string): Promise<void>
  type(keys: string): void
  /** The exit code, once the program has ended. */
  ended: Promise<number | null>
}

export function openTerminal(command: string[], env: Record<string, string>): Terminal {
  const line = command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
  const child = spawn('script', ['-qfec', line, '/dev/null'], {
    env: { TERM: 'xterm', SHELL: '/bin/sh', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let screen = ''
  let seen = 0
  let look = () => {}
  child.stdout.on('data', (chunk) => {
    screen += chunk
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
        look = () => {
          const at = screen.indexOf(text, seen)
          if (at < 0) return
          seen = at + text.length
          resolve()
        }
        look()
        void ended.then(
          () => reject(new Error(`The program ended without showing ${text}:\n${screen}`)),
          reject,
        )
      }),
    type: (keys) => child.stdin.write(keys),
    ended,
  }
}
