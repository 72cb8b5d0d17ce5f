/** Requests succeed even after a command has removed every folder that a tenant can write. */
import { expect, test } from 'vitest'
import { describeOnBothDrivers } from '../support/drivers.ts'
import { shareSandbox } from '../support/shared.ts'

describeOnBothDrivers('a sandbox with damaged folders', (driver) => {
  const { alice, params, sh, exec, waitForExit } = shareSandbox({ driver })
  const view = (path: string) => alice.call('viewFile', { params, query: { path } })
  const reset = () => alice.call('resetSandbox', { params })

  test.for([
    'chmod -R 644 .',
    'chmod 000 /workspace',
    // Excludes /usr, which is large and read-only.
    'rm -rf /[!u]* 2>/dev/null',
    'chmod 000 /run/sandlot/*',
    'rm -rf /run/sandlot/*/*; chmod 000 /run/sandlot/* /run /tmp /dev/shm',
    'chmod 000 /workspace; kill -9 $PPID',
  ])('commands, file requests and resets work after the command `%s`', async (harm, { onTestFinished }) => {
    expect(await sh('mkdir -p folder && echo here >folder/file')).toMatchObject({ exit_code: 0 })
    onTestFinished(async () => {
      await exec({ command: 'chmod 1777 /tmp; chmod -R u+rwX /workspace; rm -f /workspace/new-*', cwd: '/' })
    })
    await sh(harm)
    const isClosed = (await exec({ command: 'cd /workspace', cwd: '/' })).exit_code !== 0
    const inDefault = isClosed
      ? { stdout: '/\n', reason: expect.stringContaining('/workspace could not be entered') }
      : { stdout: '/workspace\n', reason: null }
    for (const round of ['before', 'after']) {
      expect(await sh('pwd'), round).toMatchObject({ status: 'exited', exit_code: 0, ...inDefault })
      expect(await exec({ command: 'pwd', cwd: '/' }), round).toMatchObject({
        ...{ status: 'exited', exit_code: 0, stdout: '/\n', reason: null },
      })
      const explicit = await exec({ command: 'pwd', cwd: '/workspace' })
      expect(explicit, round).toMatchObject({ status: 'exited', exit_code: isClosed ? 126 : 0, reason: null })
      const code = harm.startsWith('rm -rf /[') ? 'file_not_found' : 'permission_denied'
      const isOpen = !isClosed && (await sh('cat folder/file')).exit_code === 0
      if (isOpen) expect((await view('folder/file')).body).toMatchObject({ content: 'here\n' })
      else await expect(view('folder/file')).rejects.toMatchObject({ code })
      const create = () => alice.call('createFile', { params, body: { path: `new-${round}`, content: 'x' } })
      if (isClosed) await expect(create()).rejects.toMatchObject({ code: 'permission_denied' })
      else await create()
      if (round === 'before') await reset()
    }
  })

  test('file requests for a folder without permissions fail with permission_denied', async () => {
    await sh('mkdir -p closed && echo x >closed/file && chmod 000 closed')
    const requests = [
      () => view('closed/file'),
      () => alice.call('listFiles', { params, query: { path: 'closed' } }),
      () => alice.call('createFile', { params, body: { path: 'closed/new', content: 'x' } }),
      () => alice.call('globFiles', { params, query: { path: 'closed', pattern: '*' } }),
      () => alice.call('grepFiles', { params, query: { path: 'closed', pattern: 'x' } }),
    ]
    for (const request of requests)
      await expect(request()).rejects.toMatchObject({ code: 'permission_denied' })
  })

  test('the result of a terminal command reports an inaccessible workspace', async ({ onTestFinished }) => {
    await exec({ command: 'chmod 000 /workspace', cwd: '/' })
    onTestFinished(async () => {
      await exec({ command: 'chmod 755 /workspace', cwd: '/' })
    })
    const isClosed = (await exec({ command: 'cd /workspace', cwd: '/' })).exit_code !== 0
    const { body } = await alice.call('execCommand', { params, body: { command: 'pwd', tty: true } })
    expect(await waitForExit(body.id)).toMatchObject({
      ...{ status: 'exited', stdout: isClosed ? '/\r\n' : '/workspace\r\n' },
      reason: isClosed ? expect.stringContaining('/workspace could not be entered') : null,
    })
  })
})
