/** `.data/`: everything that a clone keeps, for one stack at a time and its owner alone. */
import { createHash } from 'node:crypto'
import { chmodSync, lstatSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { lockHolder, takeLock } from '../lock.mjs'
import { root } from '../root.mjs'
import type { StackSettings } from './stack-settings.ts'
import { startWatchdog, type Watchdog } from './watchdog.ts'

/** @returns its path */
export function prepareDataFolder(): string {
  const data = join(root, '.data')
  try {
    makePrivate(data)
  } catch (error) {
    const words = (error as Error).message
    throw new Error(`Cannot use ${data} (${words}): run npm start as its owner, or move the folder away.`)
  }
  return data
}

/** Two stacks on the same data would take each other's sockets. The guard ends with this process. */
export function guardDataFolder(data: string) {
  const { holder } = takeLock(join(data, 'stack.lock'))
  if (holder === undefined) return
  throw new Error(
    `Sandlot is running in this folder already (process ${holder}). To stop it: Ctrl-C there, or kill ${holder}`,
  )
}

/** Waits for that of an earlier run, which may still be ending what that one left. */
export async function openWatchdog(
  data: string,
  { driver, localDirectory }: StackSettings,
): Promise<Watchdog> {
  const path = join(data, 'watchdog.lock')
  while (lockHolder(path) !== undefined) await sleep(20)
  const watchdog = startWatchdog()
  takeLock(path, watchdog.pid)
  if (driver === 'local') {
    const script = join(root, 'workers', 'drivers', 'local', 'end-all.ts')
    watchdog.afterwards([process.execPath, script, localDirectory])
  }
  return watchdog
}

/**
 * Where the databases' sockets are. That is with the data, unless the clone's path is too long: a
 * socket's address has 107 bytes at most, and clients are tighter.
 */
export function socketPath(data: string): string {
  const inside = join(data, 'run')
  return Buffer.byteLength(join(inside, '.s.PGSQL.5432')) < 100
    ? inside
    : `/tmp/sandlot-${process.getuid?.()}-${createHash('sha256').update(data).digest('hex').slice(0, 12)}`
}

/** Makes that folder; it goes with the stack. */
export function socketFolder(data: string, watchdog: Watchdog): string {
  const folder = socketPath(data)
  makePrivate(folder)
  watchdog.remove(folder)
  return folder
}

/** @throws when somebody else made it: anybody can make a folder in /tmp */
function makePrivate(folder: string) {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const found = lstatSync(folder)
  if (!found.isDirectory() || found.uid !== process.getuid?.()) throw new Error(`${folder} is not ours`)
  chmodSync(folder, 0o700)
}
