import { type ChildProcess, fork } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DriverUnavailable } from '../driver.ts'
import { searchPath } from './bwrap.ts'

/** Starts processes through `launcher.mjs`, which it starts on demand, and again if it has ended. */
export class Launcher {
  private child: ChildProcess | undefined
  private readonly pending = new Map<number, PromiseWithResolvers<unknown>>()
  private lastId = 0

  /**
   * Starts the supervisor of a sandbox, whose agent will listen on a socket in `folder`.
   * @param args arguments of `/bin/sh`
   * @param release lets the supervisor start the sandbox or, if `go` is false, exit
   */
  async start(folder: string, socketName: string, args: string[]) {
    const pid = (await this.request('start', { folder, socketName, args })) as number
    return { pid, release: (go: boolean) => this.request('release', { pid, go }) }
  }

  async countEntries(folder: string, max: number): Promise<number> {
    return (await this.request('countEntries', { folder, max })) as number
  }

  close(): void {
    if (this.child?.connected) this.child.disconnect()
  }

  private async request(action: string, request: object): Promise<unknown> {
    this.child ??= this.open()
    const { child } = this
    if (!child.connected) throw unavailable('the launcher is not running')
    const id = ++this.lastId
    const answer = Promise.withResolvers<unknown>()
    this.pending.set(id, answer)
    child.send({ id, action, request }, (error) => {
      if (error) this.settle(id, (waiting) => waiting.reject(unavailable(error.message)))
    })
    return await answer.promise
  }

  private open(): ChildProcess {
    const child = forkLauncher()
    child.unref()
    child.channel?.unref()
    child.on('message', ({ id, result, error }: { id: number; result?: unknown; error?: string }) =>
      this.settle(id, (waiting) =>
        error === undefined ? waiting.resolve(result) : waiting.reject(unavailable(error)),
      ),
    )
    const onEnd = () => {
      if (this.child !== child) return
      this.child = undefined
      for (const id of this.pending.keys())
        this.settle(id, (waiting) => waiting.reject(unavailable('the launcher ended')))
    }
    child.on('error', onEnd).on('disconnect', onEnd)
    return child
  }

  private settle(id: number, how: (waiting: PromiseWithResolvers<unknown>) => void): void {
    const waiting = this.pending.get(id)
    this.pending.delete(id)
    if (waiting) how(waiting)
  }
}

const unavailable = (message: string) => new DriverUnavailable(message)

function forkLauncher(): ChildProcess {
  const nothing = openSync('/dev/null', 'r')
  try {
    return fork(join(import.meta.dirname, 'launcher.mjs'), {
      // It needs none of the worker's settings, which include secrets.
      env: { PATH: searchPath },
      execArgv: [],
      // In a separate session, Ctrl-C ends only the worker.
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc', ...maskInherited(nothing)],
    })
  } finally {
    closeSync(nothing)
  }
}

const O_CLOEXEC = 0o2000000
/** The descriptor of the channel to the launcher. */
const ipcFd = 3

/**
 * Returns `stdio` entries that replace inherited descriptors above {@link ipcFd} with `fd`, because Node closes
 * only the first few inherited descriptors in a child process.
 */
function maskInherited(fd: number): (number | 'ignore')[] {
  const inherited = readdirSync('/proc/self/fd').map(Number).filter(isInherited)
  const mask = Array<number | 'ignore'>(Math.max(ipcFd, ...inherited) - ipcFd).fill('ignore')
  for (const other of inherited) if (other > ipcFd) mask[other - ipcFd - 1] = fd
  return mask
}

function isInherited(fd: number): boolean {
  try {
    const [, flags = ''] = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8')) ?? []
    return (Number.parseInt(flags, 8) & O_CLOEXEC) === 0
  } catch {
    // The descriptor through which the list was read has been closed.
    return false
  }
}
