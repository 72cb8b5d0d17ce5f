import { spawn } from 'node:child_process'
import type { Watchdog } from '../supervisor/watchdog.ts'

interface RunOptions {
  input?: string
  cwd?: string
  environment?: Record<string, string | undefined>
  /** Kills the program if this process exits. */
  watchdog?: Watchdog
}

/**
 * Runs a program and returns its stdout.
 * @throws if the program fails; the message contains the last lines of its output
 */
export function run(command: string[], options: RunOptions = {}): Promise<string> {
  const [program, ...args] = command
  return new Promise((resolve, reject) => {
    const child = spawn(program!, args, {
      cwd: options.cwd,
      env: options.environment ?? process.env,
      stdio: 'pipe',
      // Creates a separate process group, because Ctrl-C must not interrupt initdb.
      detached: options.watchdog !== undefined,
    })
    if (child.pid !== undefined) options.watchdog?.guard('application', child.pid)
    let stdout = ''
    let all = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      all += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      all += text
    })
    child.stdin.on('error', () => {})
    child.stdin.end(options.input ?? '')
    child.on('error', (error) => reject(new Error(`Cannot start ${program}: ${error.message}`)))
    child.on('close', (code, signal) => {
      if (child.pid !== undefined) options.watchdog?.forget(child.pid)
      if (code === 0) return resolve(stdout)
      reject(new Error(`${command.join(' ')} failed (${signal ?? `exit code ${code}`}):\n${lastLines(all)}`))
    })
  })
}

export const lastLines = (text: string): string => text.trimEnd().split('\n').slice(-15).join('\n')
