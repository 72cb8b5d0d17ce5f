/** Runs a shell command from the Procfile in its own process group. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { root } from '../root.mjs'
import { signalGroup } from '../services/service.ts'
import type { KeptProcess } from './keep-running.ts'
import type { Watchdog } from './watchdog.ts'

export interface Application {
  command: string
  environment: Record<string, string | undefined>
  print: (line: string) => void
}

/** Milliseconds that an application may take to exit after SIGTERM before it is killed. */
export const graceMs = 15_000

export async function startApplication(application: Application, watchdog: Watchdog): Promise<KeptProcess> {
  const child = spawn('/bin/sh', ['-c', withoutShell(application.command)], {
    cwd: root,
    // Ctrl-C must only reach this process, which stops everything in order.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: application.environment,
  })
  const { pid } = child
  if (pid === undefined) throw new Error('Cannot start /bin/sh.')
  watchdog.guard('application', pid)
  for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', application.print)
  let stopping = false
  const ended = new Promise<string>((resolve) => {
    child.on('exit', (code, signal) => {
      // Kills the remaining processes, which would keep ports in use. During a stop, they have a grace period
      // instead, because the shell of a compound command exits before its program.
      if (!stopping) signalGroup(pid, 'SIGKILL')
      const how = signal ?? `exit code ${code}`
      // Waits for the last output, but not for detached processes that keep the pipe open.
      child.on('close', () => resolve(how))
      setTimeout(() => resolve(how), 200)
    })
  })
  void ended.then(() => stopping || watchdog.forget(pid))
  return {
    ended,
    async stop() {
      stopping = true
      signalGroup(pid, 'SIGTERM')
      const deadline = performance.now() + graceMs
      while (signalGroup(pid, 0) && performance.now() < deadline) await sleep(10)
      signalGroup(pid, 'SIGKILL')
      await ended
      watchdog.forget(pid)
    },
  }
}

/** Adds `exec` to a simple command, so that the command replaces the shell and reports its own exit status. */
function withoutShell(command: string): string {
  return /^[\w./][^;&|<>()`$]*$/.test(command) ? `exec ${command}` : command
}

/**
 * Runs a command until it exits.
 * @throws if the exit code is not 0
 */
export async function runApplication(name: string, application: Application, watchdog: Watchdog) {
  const { ended } = await startApplication(application, watchdog)
  const how = await ended
  if (how !== 'exit code 0') throw new Error(`${name} failed (${how}), so nothing was started.`)
}
