/** Starts and stops database processes. Callers handle unexpected exits. */
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Watchdog } from '../supervisor/watchdog.ts'
import { lastLines } from './run.ts'

export interface Service {
  name: string
  command: string[]
  environment?: Record<string, string | undefined>
  log: string
  /** Signal that shuts the service down gracefully even while clients are connected. */
  stopSignal: 'SIGINT' | 'SIGTERM'
  /** Returns whether the process accepts connections. */
  isReady(pid: number): Promise<boolean>
}

export interface RunningService {
  pid: number
  /** Resolves when the process exits, with a description such as `exit code 1` or `SIGKILL`. */
  ended: Promise<string>
  /** Stops the process gracefully, and kills it if it is still running after 10 s. */
  stop(): Promise<void>
}

/**
 * Starts the service and waits until it accepts connections.
 * @throws if the process exits or is not ready within 60 s; the message contains the last lines of the log
 */
export async function startService(service: Service, watchdog: Watchdog): Promise<RunningService> {
  const running = launch(service, watchdog)
  let ended: string | undefined
  running.ended.then((how) => {
    ended = how
  })
  const deadline = performance.now() + 60_000
  while (!(await service.isReady(running.pid))) {
    if (ended !== undefined) throw new Error(`${service.name} exited (${ended}):\n${logOf(service)}`)
    if (performance.now() > deadline) {
      await running.stop()
      throw new Error(`${service.name} was not ready after 60 s:\n${logOf(service)}`)
    }
    await sleep(10)
  }
  return running
}

function launch(service: Service, watchdog: Watchdog): RunningService {
  const log = openSync(service.log, 'a', 0o600)
  const [program, ...args] = service.command
  const child = spawn(program!, args, {
    detached: true,
    stdio: ['ignore', log, log],
    env: service.environment ?? process.env,
  })
  closeSync(log)
  const { pid } = child
  if (pid === undefined) {
    const ended = new Promise<string>((resolve) => child.on('error', ({ message }) => resolve(message)))
    return { pid: 0, ended, stop: async () => {} }
  }
  watchdog.guard('database', pid)
  const ended = new Promise<string>((resolve) => {
    child.on('exit', (code, signal) => {
      // Children of a killed database may still have files open.
      signalGroup(pid, 'SIGKILL')
      watchdog.forget(pid)
      resolve(signal ?? `exit code ${code}`)
    })
  })
  return {
    pid,
    ended,
    async stop() {
      child.kill(service.stopSignal)
      const force = setTimeout(() => signalGroup(pid, 'SIGKILL'), 10_000)
      await ended
      clearTimeout(force)
    },
  }
}

/**
 * Sends a signal to a process group. Returns false if the group no longer exists. Signal 0 only checks
 * whether the group exists.
 */
export function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}

const logOf = ({ log }: Service): string => lastLines(readFileSync(log, 'utf8'))
