/** Paths and environment variables of this clone of the repository. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Folder of Node's compile cache (NODE_COMPILE_CACHE), which halves the start time of a process. */
export const compileCache = join(root, 'node_modules', '.cache', 'compiled')

/** Loads the variables from .env that the environment does not already set. */
export function readDotEnv() {
  const file = join(root, '.env')
  if (existsSync(file)) process.loadEnvFile(file)
}
