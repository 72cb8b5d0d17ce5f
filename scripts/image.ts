/**
 * `npm run image`: builds the server's container image and an SBOM.
 * Requires Debian or Ubuntu, but no container engine. The build is reproducible.
 */
import { chmodSync, lutimesSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { type Contents, gatherContents, user } from './image/contents.ts'
import { makeImage } from './image/oci.ts'
import { makeSbom } from './image/sbom.ts'
import { modeOf, withFolders } from './image/tar.ts'
import { readManifest } from './third-party.mjs'

const usage = `npm run image -- [options]

Builds the image sandlot-server, which runs the API, workers, migrations and admin commands.

  --out FOLDER    writes the image and its SBOM to this folder (default: dist/image)
  --files FOLDER  writes the image's files to this folder instead, for deploy/image/Dockerfile
  --help          shows this text

SOURCE_DATE_EPOCH sets the timestamp of all files, in seconds since the Unix epoch (default: 0).`

/** Configuration of the image. Must match deploy/image/Dockerfile. */
export const config = {
  User: `${user}:${user}`,
  Env: ['PATH=/usr/bin', 'NODE_ENV=production', 'HOST=0.0.0.0'],
  Entrypoint: ['sandlot-server'],
  WorkingDir: '/app',
  ExposedPorts: { '8080/tcp': {}, '9090/tcp': {}, '9443/tcp': {} },
}

async function buildImage(created: Date) {
  const { architecture, layers, parts } = await gatherContents()
  const { version } = readManifest('')
  // Docker would resolve a name without a host to Docker Hub.
  const name = `localhost/sandlot-server:${version}`
  const { archive, digest } = await makeImage({ name, architecture, created, config, layers })
  const sbom = await makeSbom('sandlot-server', digest, created, parts)
  return { name, archive, digest, sbom, file: `sandlot-server-${version}-${architecture}` }
}

export function writeFiles({ layers }: Contents, folder: string, time: Date) {
  const entries = withFolders(layers.flat())
  mkdirSync(folder, { recursive: true })
  for (const entry of entries) {
    const path = join(folder, entry.path)
    if (entry.link !== undefined) symlinkSync(entry.link, path)
    else if (entry.data) writeFileSync(path, entry.data)
    else mkdirSync(path, { recursive: true })
    if (entry.link === undefined) chmodSync(path, modeOf(entry))
  }
  for (const { path, link } of entries.reverse()) {
    const setTimes = link === undefined ? utimesSync : lutimesSync
    setTimes(join(folder, path), time, time)
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      out: { type: 'string', default: 'dist/image' },
      files: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  const created = new Date(Number(process.env.SOURCE_DATE_EPOCH ?? 0) * 1000)
  if (values.files !== undefined) {
    return writeFiles(await gatherContents(), values.files, created)
  }
  const { name, archive, digest, sbom, file } = await buildImage(created)
  const path = join(resolve(values.out), file)
  mkdirSync(values.out, { recursive: true })
  writeFileSync(`${path}.oci.tar`, archive)
  writeFileSync(`${path}.spdx.json`, sbom)
  console.log(`${name} ${digest}`)
  console.log(`${path}.oci.tar (${(archive.length / 1e6).toFixed(1)} MB)\n${path}.spdx.json`)
}

if (import.meta.main) {
  try {
    await main()
  } catch (error) {
    console.error((error as Error).message)
    process.exitCode = 1
  }
}
