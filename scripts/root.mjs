import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Node's compile cache (NODE_COMPILE_CACHE), which halves the start time. */
export const compileCache = join(root, 'node_modules', '.cache', 'compiled')

/** Loads .env. Environment variables take precedence. */
export function readDotEnv() {
  const file = join(root, '.env')
  if (existsSync(file)) process.loadEnvFile(file)
}
