import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { type Entry, makeTar, withFolders } from './tar.ts'

interface ImageOptions {
  /** Name and tag of the image, such as `localhost/sandlot-server:0.1.0`. */
  name: string
  architecture: string
  created: Date
  /** The `config` object of the OCI specification. */
  config: Record<string, unknown>
  layers: Entry[][]
}

const type = (what: string) => `application/vnd.oci.image.${what}`
const digestOf = (data: Buffer) => `sha256:${createHash('sha256').update(data).digest('hex')}`
const json = (value: unknown) => Buffer.from(JSON.stringify(value))

/** Returns the image as a tar archive in the OCI layout, with the digest of its manifest. */
export async function makeImage(options: ImageOptions): Promise<{ archive: Buffer; digest: string }> {
  const { name, architecture, created, config } = options
  const layers = await Promise.all(options.layers.map((layer) => makeLayer(layer, created)))
  const configuration = json({
    created: created.toISOString(),
    architecture,
    os: 'linux',
    config,
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(() => ({ created: created.toISOString(), created_by: 'npm run image' })),
  })
  const manifest = json({
    schemaVersion: 2,
    mediaType: type('manifest.v1+json'),
    config: describe('config.v1+json', configuration),
    layers: layers.map(({ data }) => describe('layer.v1.tar+gzip', data)),
  })
  const index = json({
    schemaVersion: 2,
    mediaType: type('index.v1+json'),
    manifests: [
      {
        ...describe('manifest.v1+json', manifest),
        platform: { architecture, os: 'linux' },
        annotations: {
          'io.containerd.image.name': name,
          'org.opencontainers.image.ref.name': name.split(':').at(-1),
        },
      },
    ],
  })
  const blobs = [...layers.map(({ data }) => data), configuration, manifest].map((data) => ({
    path: `blobs/${digestOf(data).replace(':', '/')}`,
    data,
  }))
  const layout = { path: 'oci-layout', data: json({ imageLayoutVersion: '1.0.0' }) }
  const entries = withFolders([layout, { path: 'index.json', data: index }, ...blobs])
  return { archive: makeTar(entries, created), digest: digestOf(manifest) }
}

const describe = (what: string, data: Buffer) => ({
  ...{ mediaType: type(what), digest: digestOf(data), size: data.length },
})

async function makeLayer(entries: Entry[], created: Date): Promise<{ data: Buffer; diffId: string }> {
  const tar = makeTar(withFolders(entries), created)
  return { data: await promisify(gzip)(tar), diffId: digestOf(tar) }
}
