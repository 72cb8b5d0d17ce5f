/**
 * Collects the image's files in layers. The layers that change least often come first: libraries, then Node,
 * then the server.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, stop } from 'esbuild'
import { root } from '../root.mjs'
import { serverBundle } from '../server-bundle.ts'
import { describeThirdParty, packagesIn, readManifest } from '../third-party.mjs'
import { readLibraries } from './debian.ts'
import type { Part } from './sbom.ts'
import type { Entry } from './tar.ts'

export interface Contents {
  architecture: string
  layers: Entry[][]
  parts: Part[]
}

/** UID and GID of `nonroot` in distroless images. */
export const user = 65_532

const entryPoints = {
  api: 'api/main.ts',
  worker: 'workers/main.ts',
  migrate: 'migrations/run.ts',
  admin: 'scripts/admin.ts',
  // A thread's entry file must be next to the code that starts the thread.
  'stall-watcher': 'shared/platform/stall-watcher.mjs',
}

const architectures: Record<string, string> = { x64: 'amd64', arm64: 'arm64' }

/** @throws {Error} a user-facing error if this machine cannot build the image */
export async function gatherContents(): Promise<Contents> {
  const architecture = architectures[process.arch]
  if (process.platform !== 'linux' || architecture === undefined)
    throw new Error(`The image cannot be built on ${process.platform} with ${process.arch}.`)
  const libraries = await readLibraries(architecture)
  const node = readNode()
  const server = await bundleServer()
  return {
    architecture,
    layers: [[...system, ...libraries.entries], node.entries, server],
    parts: [...libraries.parts, node.part],
  }
}

const file = (path: string, text: string): Entry => ({ path, data: Buffer.from(text) })

const system: Entry[] = [
  { path: 'lib', link: 'usr/lib' },
  { path: 'lib64', link: 'usr/lib64' },
  { path: 'usr/lib64' },
  file('etc/passwd', `root:x:0:0::/:/\nsandlot:x:${user}:${user}::/:/\n`),
  file('etc/group', `root:x:0:\nsandlot:x:${user}:\n`),
  file('etc/nsswitch.conf', 'hosts: files dns\n'),
]

/** Returns the Node in node_modules, which may differ from the Node that is running this script. */
function readNode(): { entries: Entry[]; part: Part } {
  const folder = join('node_modules', `node-${process.platform}-${process.arch}`)
  const { name, version, license } = readManifest(folder)
  const read = (path: string) => readFileSync(join(root, folder, path))
  return {
    entries: [
      { path: 'usr/bin/node', data: read('bin/node'), mode: 0o755 },
      { path: 'usr/share/doc/node/copyright', data: read('LICENSE') },
    ],
    part: { name, version, licence: license, purl: `pkg:npm/${name}@${version}` },
  }
}

async function bundleServer(): Promise<Entry[]> {
  const outdir = join(root, 'dist', 'image')
  const options = { ...serverBundle, entryPoints, outdir, metafile: true, write: false } as const
  const { outputFiles, metafile } = await build(options).finally(stop)
  const start = 'app/sandlot-server.mjs'
  return [
    ...outputFiles.map(({ path, contents }) => ({
      path: `app/${path.slice(outdir.length + 1)}`,
      data: Buffer.from(contents),
    })),
    { path: start, data: readFileSync(join(import.meta.dirname, 'sandlot-server.mjs')), mode: 0o755 },
    { path: 'usr/bin/sandlot-server', link: `/${start}` },
    { path: 'app/LICENSE', data: readFileSync(join(root, 'LICENSE')) },
    file('app/THIRD-PARTY.txt', describeThirdParty('The server', packagesIn(metafile))),
  ]
}
