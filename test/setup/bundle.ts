/**
 * Puts all code of an API, and of a worker, into a few files: such a process starts with a third of the CPU. The bundle
 * is the run's own, and so is what Node keeps of its compilation. `npm start`, which test/start tries, runs the sources.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin, stop } from 'esbuild'
import { serverBundle } from '../../scripts/server-bundle.ts'

export interface Bundle {
  /** Absolute paths of what starts a process of each kind. */
  api: string
  worker: string
  doomedWorker: string
  /** NODE_COMPILE_CACHE of all of them. */
  compileCache: string
}

const entries = {
  api: 'api/main.ts',
  worker: 'workers/main.ts',
  doomedWorker: 'test/support/doomed-worker.ts',
}

/** @param folder must not be there yet */
export async function bundleServer(folder: string): Promise<Bundle> {
  await build({
    ...serverBundle,
    entryPoints: entries,
    outdir: folder,
    plugins: [withOwnPlaces, withPlainBuiltins],
  }).finally(stop)
  const fileOf = (name: keyof typeof entries) => join(folder, `${name}.mjs`)
  const bundle = {
    api: fileOf('api'),
    worker: fileOf('worker'),
    doomedWorker: fileOf('doomedWorker'),
    compileCache: join(folder, 'compiled'),
  }
  await Promise.all([compile(bundle.api, bundle), compile(bundle.worker, bundle)])
  return bundle
}

/** What lies beside a source is found from the bundle too. */
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

/** `import` touches every lazy getter of a module of Node's: with node:http, that loads all of fetch. */
const withPlainBuiltins: Plugin = {
  name: 'with-plain-builtins',
  setup({ onResolve, onLoad }) {
    const namespace = 'builtin'
    onResolve({ filter: /^(node:)?[\w/]+$/ }, ({ path, kind }) =>
      isBuiltin(path) && kind === 'import-statement' ? { path, namespace } : undefined,
    )
    onLoad({ filter: /.*/, namespace }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)})`,
    }))
  },
}

/** A process without settings ends at once, and Node keeps what it has compiled until then. */
async function compile(file: string, { compileCache }: Bundle): Promise<void> {
  await new Promise<void>((resolve) => {
    execFile(process.execPath, [file], { env: { NODE_COMPILE_CACHE: compileCache } }, () => resolve())
  })
}
