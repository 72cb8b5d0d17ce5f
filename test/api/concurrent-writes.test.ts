/** Writes during other writes or commands. file-pairs.test.ts tests every pair of operations. */
import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { describeOnEveryImageAtOnce } from '../support/drivers.ts'
import { responseOf } from '../support/pairs.ts'
import { rawFiles } from '../support/raw-files.ts'
import { shareSandbox } from '../support/shared.ts'

const sha256 = (bytes: string | Buffer) => hash('sha256', bytes)

describeOnEveryImageAtOnce('concurrent writes to a file', ({ driver, env }) => {
  const { world, alice, params, sh, countOf } = shareSandbox({ driver, env })
  const { put } = rawFiles({ world, alice, params })
  const printed = async (line: string) => (await sh(line)).stdout

  test('an edit or conditional write waits for an ongoing write to the same file', async () => {
    const whole = 'first\nsecond\n'
    const body = { path: 'other', old: 'second', new: 'edited' }
    const ways = {
      edit: () => alice.call('editFile', { params, body }),
      'edit with if_match': () =>
        alice.call('editFile', { params, body: { ...body, if_match: sha256(whole) } }),
      'write with If-Match': () =>
        put({ path: 'other' }, Buffer.from('first\nedited\n'), { 'if-match': `"${sha256(whole)}"` }),
    }
    for (const [name, ask] of Object.entries(ways)) {
      await sh('rm -f written other go; : >written; ln written other')
      // Blocks a write until the test releases the lock.
      const lock =
        'if command -v flock >/dev/null; then flock 8; else ln -s /proc/$$/cmdline /tmp/.sandlot-turn; fi'
      const write = `printf first >written; until [ -e go ]; do sleep 0.2; done; printf '${whole}' >written`
      const command = `exec 8<"$HOME"; ${lock}; ${write}; rm -f /tmp/.sandlot-turn`
      await alice.call('execCommand', { params, body: { command, background: true } })
      await world.eventually(async () => (await printed('cat other')) === 'first', 10_000)
      let isOver = false
      const answer = responseOf(ask, ({ status }) => status).finally(() => {
        isOver = true
      })
      await world.eventually(async () => isOver || (await countOf('slee[p] 0.05')) > 0, 10_000)
      await sh(': >go')
      expect(await answer, name).toBeOneOf([200, 201])
      expect(await printed('cat written'), name).toBe('first\nedited\n')
    }
  })

  test('rejects an upload if a folder is created at the target path during the upload', async () => {
    for (const overwrite of ['true', 'false']) {
      let end = () => {}
      const body = new ReadableStream({
        start(controller) {
          controller.enqueue(Buffer.from('content'))
          end = () => controller.close()
        },
      })
      const answer = put({ path: 'later', overwrite }, body)
      await world.eventually(async () => (await printed('ls -A | grep -c sandlot')) === '1\n', 10_000)
      await sh('mkdir later')
      end()
      expect(await answer).toMatchObject({ status: 409, body: { code: 'is_directory' } })
      expect(await printed('ls -A later; rmdir later; ls -A | grep sandlot')).toBe('')
    }
  })

  test('a lock left behind by a dead process does not delay writes', async () => {
    await sh('ln -s /proc/999999999/cmdline /tmp/.sandlot-turn')
    expect((await put({ path: 'free' }, Buffer.from('x'))).status).toBe(201)
    await sh('rm -f /tmp/.sandlot-turn')
  })
})
