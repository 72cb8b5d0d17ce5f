import type { ChildProcess } from 'node:child_process'
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { describeOnBothDrivers } from '../support/drivers.ts'
import { eventually } from '../support/eventually.ts'
import { startWorld, type World } from '../support/index.ts'
import type { Ran } from './client.ts'
import { makeUsers, type Users } from './users.ts'

// Excludes busybox, whose shell ignores PATH for tar.
describeOnBothDrivers('copies', (driver) => {
  let world: World
  let user: Awaited<ReturnType<Users['newUser']>>
  beforeAll(async () => {
    world = await startWorld({ driver })
    user = await makeUsers(world).newUser()
    // Folder for a fake tar that stops half-way or sends a hostile archive.
    const path = 'PATH=/workspace/.bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
    expect(await user.run(['session', 'create', '--env', path])).toMatchObject({ code: 0 })
  })
  afterAll(async () => {
    await user?.run(['session', 'rm', '--all', '--yes'])
    user?.[Symbol.dispose]()
    await world?.[Symbol.asyncDispose]()
  })
  afterEach(() => sh('rm -rf .bin'))

  const local = (name: string) => join(world.folder, name)
  const names = ['file0', 'file1', 'file2', 'file3']
  const sh = async (script: string): Promise<string> => {
    const ran = await user.run(['exec', '-c', script])
    expect(ran).toMatchObject({ code: 0 })
    return ran.stdout
  }
  const putTar = (script: string) =>
    user.run(['files', 'create', '.bin/tar', '--mode', '755', '--content', `#!/bin/sh\n${script}\n`])

  async function interrupt(args: string[], isHalfWay: () => Promise<unknown> | unknown): Promise<Ran> {
    const started = Promise.withResolvers<ChildProcess>()
    const ran = user.run(['cp', ...args], { onStart: started.resolve })
    const child = await started.promise
    await eventually(isHalfWay, 15_000)
    child.kill('SIGINT')
    return await ran
  }

  test('an interrupted copy into a session leaves no partially written file', async () => {
    mkdirSync(local('large'))
    for (const name of names) writeFileSync(local(`large/${name}`), Buffer.alloc(500_000))
    await sh('mkdir large; echo old > large/file0')
    // Sends a truncated archive, then waits.
    await putTar('head -c 700000 | /bin/tar "$@"; sleep 600')
    const ran = await interrupt([`${local('large')}/.`, ':large'], async () =>
      (await sh('ls -A large/.sandlot-*/root 2>/dev/null || true')).includes('file1'),
    )
    expect(ran).toMatchObject({ code: 130 })
    await eventually(async () => (await sh('ls -A large; cat large/file0')) === 'file0\nold\n', 15_000)
  })

  test('an interrupted copy out of a session leaves no partially written file', async () => {
    await sh('mkdir source; for n in 0 1 2 3; do head -c 500000 /dev/zero > source/file$n; done')
    await putTar('/bin/tar "$@" | head -c 700000; sleep 600')
    mkdirSync(local('fetched'))
    for (const name of names) writeFileSync(local(`fetched/${name}`), 'old')
    const ran = await interrupt([':source/.', local('fetched')], () =>
      readdirSync(local('fetched')).some((name) => name.endsWith('.part')),
    )
    expect(ran).toMatchObject({ code: 130 })
    const sizes = readdirSync(local('fetched')).map((name) => statSync(local(`fetched/${name}`)).size)
    expect(sizes.sort()).toEqual([3, 3, 3, 500_000])
  })

  test('an interrupted copy of a single file into a session leaves no temporary file', async () => {
    await sh('echo old > one')
    execFileSync('mkfifo', [local('endless')])
    // Opening a pipe for reading and writing does not block.
    const pipe = openSync(local('endless'), 'r+')
    writeSync(pipe, Buffer.alloc(60_000))
    const up = await interrupt([local('endless'), ':one'], async () =>
      (await sh('ls -A')).includes('.sandlot-'),
    )
    closeSync(pipe)
    expect(up).toMatchObject({ code: 130 })
    await eventually(async () => !(await sh('ls -A')).includes('.sandlot-'), 15_000)
    expect(await sh('cat one')).toBe('old\n')
  })
})
