/** Extracts the image's server files, which are smaller and start faster than the project's sources. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gatherContents } from '../scripts/image/contents.ts'

/** Writes the files to a temporary folder. Returns the paths of the main modules. */
export async function extractImage() {
  using undo = new DisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-bench-'))
  undo.defer(() => rmSync(folder, { recursive: true, force: true }))
  const { layers } = await gatherContents()
  for (const { path, data } of layers.at(-1)!) {
    if (!data) continue
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), data)
  }
  const rest = undo.move()
  return {
    entries: { api: join(folder, 'app', 'api.mjs'), worker: join(folder, 'app', 'worker.mjs') },
    [Symbol.dispose]: () => rest[Symbol.dispose](),
  }
}
