/** The settings file of another program: read, backed up, and replaced whole by rename, its mode kept. */
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

/** A file that cannot be edited, in words that name the place. */
export class Unreadable extends Error {}

/** @returns undefined when there is none @throws {CliError} `settings_broken` */
export function readSettings(file: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(file))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw new CliError('settings_broken', `${file} cannot be read: ${message}`)
  }
}

/** A file of a user is private; a file of a project is for all who work on it. */
const newModes: Record<TargetScope, number> = { user: 0o600, project: 0o644 }

/**
 * Where a symbolic link leads, the file there is replaced, and the link stays.
 * @returns where the former text is kept, undefined when there was no file
 * @throws {CliError} `settings_broken`
 */
export function writeSettings(file: string, text: string, scope: TargetScope): string | undefined {
  try {
    mkdirSync(dirname(file), { recursive: true })
    const target = followLinks(file)
    const former = statSync(target, { throwIfNoEntry: false })
    const backup = former && `${target}.sandlot-backup`
    if (backup !== undefined) {
      rmSync(backup, { force: true })
      copyFileSync(target, backup)
    }
    replaceFile(target, text, former ? former.mode & 0o7777 : newModes[scope])
    return backup
  } catch (error) {
    throw new CliError('settings_broken', `${file} cannot be written: ${(error as Error).message}`)
  }
}
