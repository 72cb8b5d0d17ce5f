import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bwrap, directory, keepDirectory } from './local-world.ts'

keepDirectory()

/**
 * Options for `unshare`. Root needs no user namespace, in which there would be only one user and none for
 * sandboxes.
 */
const inNamespace = process.getuid!() === 0 ? ['--mount'] : ['--user', '--map-root-user', '--mount']
const canMount = spawnSync('unshare', [...inNamespace, 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0

test.runIf(canMount)('rejects new sandboxes while the disk is full, and reports the reason', () => {
  const script = join(import.meta.dirname, 'full-disk.ts')
  const command = [...inNamespace, process.execPath, script, directory, ...(bwrap ? [bwrap] : [])]
  const [ping, create] = JSON.parse(execFileSync('unshare', command, { encoding: 'utf8' }))
  const noSpace = `no space is left on the disk of ${directory}`
  expect(ping).toContain(`ClusterMisconfigured: ${noSpace}`)
  expect(create).toContain(`PodRefused: ${noSpace}`)
})
