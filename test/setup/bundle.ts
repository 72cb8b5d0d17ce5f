/**
 * Bundles API and worker, so that a process starts with a third of the CPU time.
 * Each run has its own bundle and V8 cache (see run-bundle.cjs). `npm start` runs the sources.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin, stop } from 'esbuild'
import { plainBuiltins } from '../../scripts/plain-builtins.mjs'
import { root } from '../../scripts/root.mjs'
import { serverBundle } from '../../scripts/server-bundle.ts'

/** Absolute paths of Node's program and of its first argument per kind of process. */
export interface Bundle {
  runner: string
  api: string
  worker: string
  doomedWorker: string
}

const runner = join(root, 'test/setup/run-bundle.cjs')
const entries = {
  api: 'api/main.ts',
  worker: 'workers/main.ts',
  doomedWorker: 'test/support/doomed-worker.ts',
}

/** @param folder must not exist */
export async function bundleServer(folder: string): Promise<Bundle> {
  const { outExtension: _, ...server } = serverBundle
  await build({
    ...server,
    // V8 caches no functions of ES modules, so the bundle is a script.
    splitting: false,
    // Reduces parsing time. A crash prints the whole line.
    minifyWhitespace: true,
    lineLimit: 160,
    define: { ...server.define, 'import.meta': 'importMeta' },
    banner: { js: '(async (require, importMeta) => { "use strict"' },
    footer: { js: '})' },
    entryPoints: entries,
    outdir: folder,
    plugins: [withOwnPlaces, plainBuiltins],
  }).finally(stop)
  const fileOf = (name: keyof typeof entries) => join(folder, `${name}.js`)
  const files = { api: fileOf('api'), worker: fileOf('worker'), doomedWorker: fileOf('doomedWorker') }
  await Promise.all(Object.values(files).map(compile))
  return { runner, ...files }
}

/** Makes the bundle find files by their source paths. */
const withOwnPlaces: Plugin = {
  name: 'with-own-places',
  setup({ onLoad }) {
    onLoad({ filter: /\/(api|workers|shared)\/.*\.ts$/ }, async ({ path }) => {
      if (path.includes('/node_modules/')) return undefined
      const contents = (await readFile(path, 'utf8'))
        .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)))
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
      return { contents, loader: 'ts' }
    })
  },
}

/** Without settings, a process exits immediately and saves V8's compiled code. */
async function compile(file: string): Promise<void> {
  await new Promise<void>((resolve) => {
    execFile(process.execPath, [runner, file], { env: {} }, () => resolve())
  })
}
