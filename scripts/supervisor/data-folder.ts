/**
 * Manages `.data/`, in which `npm start` keeps all data of this clone of the repository. Only the owner of
 * the folder may use it, and only one stack at a time.
 */
import { createHash } from 'node:crypto'
import { chmodSync, lstatSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { lockHolder, takeLock } from '../lock.mjs'
import { root } from '../root.mjs'
import type { StackSettings } from './stack-settings.ts'
import { startWatchdog, type Watchdog } from './watchdog.ts'

export function prepareDataFolder(): string {
  const data = join(root, '.data')
  try {
    makePrivate(data)
  } catch (error) {
    const { message } = error as Error
    throw new Error(
      `Cannot use ${data} (${message}). Run npm start as the folder's owner, or move the folder elsewhere.`,
    )
  }
  return data
}

/**
 * Locks the data folder until this process exits, so that a second stack cannot take over its sockets.
 * @throws a user-facing error if another stack is running
 */
export function guardDataFolder(data: string) {
  const { holder } = takeLock(join(data, 'stack.lock'))
  if (holder === undefined) return
  throw new Error(
    `Sandlot is already running in this folder (process ${holder}). To stop it, press Ctrl-C there or run: kill ${holder}`,
  )
}

/** Waits until the watchdog of the previous stack has stopped that stack's processes. */
export async function waitForWatchdog(data: string): Promise<void> {
  while (lockHolder(join(data, 'watchdog.lock')) !== undefined) await sleep(20)
}

export function openWatchdog(data: string, { driver, localDirectory }: StackSettings): Watchdog {
  const watchdog = startWatchdog()
  takeLock(join(data, 'watchdog.lock'), watchdog.pid)
  if (driver === 'local') {
    const script = join(root, 'workers', 'drivers', 'local', 'destroy-all.ts')
    watchdog.afterwards([process.execPath, script, localDirectory])
  }
  return watchdog
}

/**
 * Returns the folder for database sockets: in the data folder, or in /tmp if the path would be too long.
 * Socket paths are limited to 107 bytes, and some clients impose a lower limit.
 */
export function socketPath(data: string): string {
  const inside = join(data, 'run')
  return Buffer.byteLength(join(inside, '.s.PGSQL.5432')) < 100
    ? inside
    : `/tmp/sandlot-${process.getuid?.()}-${createHash('sha256').update(data).digest('hex').slice(0, 12)}`
}

export function socketFolder(data: string, watchdog: Watchdog): string {
  const folder = socketPath(data)
  makePrivate(folder)
  watchdog.remove(folder)
  return folder
}

/**
 * Creates a folder that only its owner can access.
 * @throws if the folder belongs to another user, which is possible in /tmp
 */
function makePrivate(folder: string) {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const found = lstatSync(folder)
  if (!found.isDirectory() || found.uid !== process.getuid?.())
    throw new Error(`${folder} belongs to another user`)
  chmodSync(folder, 0o700)
}
