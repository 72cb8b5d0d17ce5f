/** Runs a program without printing its output. If the program fails, the error includes the last lines. */
import { spawn } from 'node:child_process'
import type { Watchdog } from '../supervisor/watchdog.ts'

export interface RunOptions {
  input?: string
  cwd?: string
  environment?: Record<string, string | undefined>
  /** Kills the program if this process exits. */
  watchdog?: Watchdog
}

/**
 * Returns stdout.
 * @throws if the program fails, with the last lines of output
 */
export function run(command: string[], options: RunOptions = {}): Promise<string> {
  const [program, ...args] = command
  return new Promise((resolve, reject) => {
    const child = spawn(program!, args, {
      cwd: options.cwd,
      env: options.environment ?? process.env,
      stdio: 'pipe',
      // A separate process group, because Ctrl-C must not interrupt an initdb.
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

export function lastLines(text: string): string {
  return text.trimEnd().split('\n').slice(-15).join('\n')
}
