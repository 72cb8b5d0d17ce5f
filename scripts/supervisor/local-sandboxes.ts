/**
 * Local sandboxes outlive their worker by design. They do not outlive `npm start`: the stack ends
 * them when it stops, and the watchdog runs this file when the stack was killed.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../root.mjs'

/**
 * Ends the processes of every sandbox of the local driver.
 * @param directory SANDBOX_LOCAL_DIR
 * @returns how many there were
 */
export async function endLocalSandboxes(directory: string): Promise<number> {
  const driver = join(root, 'workers', 'drivers', 'local', 'end-all.ts')
  if (!existsSync(driver) || !existsSync(directory)) return 0
  const { endAllSandboxes } = (await import(pathToFileURL(driver).href)) as {
    endAllSandboxes: (directory: string) => Promise<number>
  }
  return endAllSandboxes(directory)
}

if (import.meta.main) await endLocalSandboxes(process.argv[2]!)
