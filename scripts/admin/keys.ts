/** What the API processes are given in place of SECRETS_KEY. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { keysOfApi } from '../../shared/platform/keys.ts'
import { readDotEnv, root } from '../root.mjs'
import { secretFile } from '../supervisor/stack-settings.ts'

/**
 * Of the SECRETS_KEY of the environment or of .env; else of that which `npm start` keeps in this folder.
 * @returns lines for an environment
 * @throws in words for the terminal when there is neither
 */
export function showPublicKey(): string {
  readDotEnv()
  const kept = secretFile('SECRETS_KEY', join(root, '.data'))
  const SECRETS_KEY = process.env.SECRETS_KEY || (existsSync(kept) ? readFileSync(kept, 'utf8').trim() : '')
  if (SECRETS_KEY === '') throw new Error('No key: set SECRETS_KEY, or run npm start in this folder.')
  const keys = keysOfApi({ SECRETS_KEY, CALLS_KEY: process.env.CALLS_KEY || undefined })
  return Object.entries(keys)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n')
}
