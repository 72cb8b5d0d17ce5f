import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { root } from '../../scripts/root.mjs'

test('unreadable folders in a sandbox do not stop the count of its files', async () => {
  const local = (file: string) => JSON.stringify(join(root, 'workers', 'drivers', 'local', file))
  // Runs as an unprivileged user, because root can read every folder.
  const script = `
    import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
    import { enforceInodeQuota } from ${local('inode-quota.ts')}
    import { Launcher } from ${local('launcher.ts')}
    import { podFolder } from ${local('state.ts')}
    if (process.getuid() === 0) {
      process.setgid(65534)
      process.setuid(65534)
    }
    const directory = mkdtempSync('/tmp/sandlot-inodes-')
    const workspace = podFolder(directory, 'pod') + '/workspace'
    mkdirSync(workspace, { recursive: true })
    const unreadable = Array.from({ length: 60 }, (_, at) => workspace + '/' + 'a'.repeat(150) + at)
    for (const folder of unreadable) mkdirSync(folder, { mode: 0 })
    mkdirSync(workspace + '/files')
    for (let at = 0; at < 1500; at++) writeFileSync(workspace + '/files/' + at, '')
    const end = new AbortController()
    const exceeded = async () => {
      console.log('exceeded')
      end.abort()
    }
    // Also keeps the process alive between two counts.
    const timeout = setTimeout(() => end.abort(), 5000)
    const launcher = new Launcher()
    await enforceInodeQuota(directory, launcher, 1000, async () => [{ name: 'pod' }], exceeded, end.signal)
    clearTimeout(timeout)
    launcher.close()
    for (const folder of unreadable) chmodSync(folder, 0o700)
    rmSync(directory, { recursive: true })`
  const node = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  expect((await node).stdout).toBe('exceeded\n')
})
