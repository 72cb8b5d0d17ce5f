import { copyFileSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { TextDecoder } from 'node:util'
import { CliError } from '../core/errors.ts'
import { followLinks, replaceFile } from '../core/replace-file.ts'
import type { TargetScope } from './targets.ts'

export interface EntryPath {
  section: string
  name: string
}

/** Thrown if a settings file cannot be edited. The message states the reason. */
export class Unreadable extends Error {}

/** Reads a settings file, or returns undefined if it does not exist. @throws {CliError} `settings_broken` */
export function readSettings(file: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(file))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw new CliError('settings_broken', `${file} cannot be read: ${message}`)
  }
}

/** File modes of new settings files. Other users can read a project's file, because projects are shared. */
const newModes: Record<TargetScope, number> = { user: 0o600, project: 0o644 }

/**
 * Backs up a settings file, and replaces it atomically. Keeps symbolic links.
 * @returns the path of the backup, or undefined for a new file
 * @throws {CliError} `settings_broken` if the file cannot be written
 */
export function writeSettings(file: string, text: string, scope: TargetScope): string | undefined {
  try {
    mkdirSync(dirname(file), { recursive: true })
    const target = followLinks(file)
    const previous = statSync(target, { throwIfNoEntry: false })
    const backup = previous && `${target}.sandlot-backup`
    if (backup !== undefined) {
      rmSync(backup, { force: true })
      copyFileSync(target, backup)
    }
    replaceFile(target, text, previous ? previous.mode & 0o7777 : newModes[scope])
    return backup
  } catch (error) {
    throw new CliError('settings_broken', `${file} cannot be written: ${(error as Error).message}`)
  }
}
