/** The folder of the clone. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Where Node keeps what it compiled (NODE_COMPILE_CACHE): a process then starts in half the time. */
export const compileCache = join(root, 'node_modules', '.cache', 'compiled')

/** Fills in from .env what the environment leaves open. */
export function readDotEnv() {
  const file = join(root, '.env')
  if (existsSync(file)) process.loadEnvFile(file)
}
