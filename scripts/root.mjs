import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Folder of Node's compile cache (NODE_COMPILE_CACHE), which halves the startup time. */
export const compileCache = join(root, 'node_modules', '.cache', 'compiled')

/** Loads .env into the environment. Variables that are already set take precedence. */
export function readDotEnv() {
  const file = join(root, '.env')
  if (existsSync(file)) process.loadEnvFile(file)
}
