/**
 * Pulls an image from a registry that requires a login. Needs a single-node cluster on the machine that runs the suite,
 * because containerd uses plain HTTP only for registries on the loopback address. Also needs docker-registry, htpasswd,
 * skopeo, ctr and a static busybox. Set CONTAINERD_ADDRESS so that ctr can remove the image from the node afterwards.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeImage } from '../../scripts/image/oci.ts'
import { findProgram } from '../../scripts/services/find-program.ts'
import { PodRefused } from '../../workers/drivers/driver.ts'
import { hasCluster } from '../support/cluster.ts'
import { waitFor } from '../support/eventually.ts'
import { type ClusterWorld, startClusterWorld } from './kubernetes-world.ts'
import { run, shell, untilReady } from './processes.ts'
import { ofSandbox } from './requests.ts'

const tools = ['docker-registry', 'htpasswd', 'skopeo', 'ctr', 'busybox']
const hasTools = tools.every((tool) => findProgram(tool) !== undefined)
const user = 'operator'
const password = randomBytes(16).toString('hex')

describe.skipIf(!hasCluster || !hasTools)('a registry that requires a login', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-registry-'))
  let world: ClusterWorld
  let registry: ChildProcess
  let host: string
  let image: string
  let digest: string

  beforeAll(async () => {
    host = `127.0.0.1:${await findFreePort()}`
    // The pull policy is IfNotPresent, so the node must not have an image of this name.
    image = `${host}/private/busybox:${randomBytes(4).toString('hex')}`
    registry = await startRegistry(folder, host)
    digest = await pushBusybox(folder, image)
    world = await startClusterWorld()
  }, 120_000)

  afterAll(async () => {
    await world?.close()
    registry?.kill()
    rmSync(folder, { recursive: true, force: true })
    // The kubelet's pull adds the image by name, by digest and by id.
    const ctr = (...args: string[]) =>
      String(execFileSync('ctr', ['--namespace', 'k8s.io', 'images', ...args]))
    const names = ctr('ls', '--quiet', `target.digest==${digest}`).split('\n').filter(Boolean)
    if (names.length > 0) ctr('rm', ...names)
  })

  test("without a pull secret, a pod fails with the registry's message", async () => {
    const driver = world.open()
    const pod = await driver.create({ ...ofSandbox(), image, deadlineSeconds: 300 })
    const refusal = await untilReady(driver, pod).catch((error) => error)
    expect(refusal).toBeInstanceOf(PodRefused)
    expect(refusal.message).toMatch(/^(ErrImagePull|ImagePullBackOff): .*(no basic auth credentials|401)/s)
    await driver.delete(pod)
  })

  test('with a pull secret, a sandbox runs a command in the private image', async () => {
    const auth = Buffer.from(`${user}:${password}`).toString('base64')
    await world.api.createNamespacedSecret({
      namespace: world.namespace,
      body: {
        metadata: { name: 'registry' },
        type: 'kubernetes.io/dockerconfigjson',
        stringData: { '.dockerconfigjson': JSON.stringify({ auths: { [host]: { auth } } }) },
      },
    })
    const driver = world.open({ SANDBOX_IMAGE_PULL_SECRETS: 'registry' })
    const pod = await driver.create({ ...ofSandbox(), image, deadlineSeconds: 300 })
    await untilReady(driver, pod)
    expect(await run(driver, pod, shell('echo hello'))).toEqual({ stdout: 'hello\n', stderr: '', code: 0 })
    await driver.delete(pod)
  })
})

async function startRegistry(folder: string, host: string): Promise<ChildProcess> {
  const passwords = join(folder, 'htpasswd')
  writeFileSync(passwords, execFileSync('htpasswd', ['-Bbn', user, password]))
  const config = join(folder, 'config.json')
  // The registry reads YAML, which includes JSON.
  writeFileSync(
    config,
    JSON.stringify({
      version: 0.1,
      storage: { filesystem: { rootdirectory: join(folder, 'data') } },
      http: { addr: host },
      auth: { htpasswd: { realm: 'test', path: passwords } },
    }),
  )
  const child = spawn('docker-registry', ['serve', config], { stdio: 'ignore' })
  await waitFor(async () => (await fetch(`http://${host}/v2/`)).status === 401, 20_000)
  return child
}

/** @returns the digest of the image's manifest */
async function pushBusybox(folder: string, image: string): Promise<string> {
  const busybox = findProgram('busybox')!
  const names = String(execFileSync(busybox, ['--list']))
    .trim()
    .split('\n')
  const links = names.filter((name) => name !== 'busybox').map((name) => `bin/${name}`)
  const { archive, digest } = await makeImage({
    name: image,
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    created: new Date(0),
    config: { Env: ['PATH=/bin'] },
    layers: [
      [
        { path: 'bin/busybox', data: readFileSync(busybox), mode: 0o755 },
        ...links.map((path) => ({ path, link: 'busybox' })),
      ],
    ],
  })
  const file = join(folder, 'image.tar')
  writeFileSync(file, archive)
  const login = ['--dest-tls-verify=false', '--dest-creds', `${user}:${password}`]
  execFileSync('skopeo', ['copy', '--quiet', ...login, `oci-archive:${file}`, `docker://${image}`])
  return digest
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return address.port
}
