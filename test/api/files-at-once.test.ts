/** Two operations on one file at the same moment: some order of the two explains what comes of them. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { describeOnEveryImageAtOnce } from '../support/drivers.ts'
import { toldBy } from '../support/pairs.ts'
import { rawFiles } from '../support/raw-files.ts'
import { shareSandbox } from '../support/shared.ts'

const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex')
const large = 32 * 1024 * 1024

describeOnEveryImageAtOnce('two operations on one file', ({ driver, env }) => {
  const { world, alice, params, sh, countOf } = shareSandbox({ driver, env })
  const { put } = rawFiles({ world, alice, params })
  const printed = async (line: string) => (await sh(line)).stdout

  test('of two writes that mean the same file, one is refused', async () => {
    const meant = { 'if-match': `"${sha256(Buffer.alloc(large))}"` }
    for (const names of [
      ['meant', 'meant'],
      ['meant', 'link'],
      ['meant', 'folder/../alias/meant'],
    ]) {
      // So large that both look at it for some time.
      await sh(`rm -f meant; truncate -s ${large} meant; ln -sf meant link; mkdir -p folder; ln -sfn . alias`)
      const answers = await Promise.all(
        names.map((path, index) => put({ path }, Buffer.from(`${index}`), meant)),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 412])
      expect(await printed('cat meant')).toBe(`${answers.findIndex(({ status }) => status === 201)}`)
    }
  })

  test('edits of one file by two of its names are both kept', async () => {
    for (const name of ['link', 'folder/../alias/both', 'hard']) {
      const filler = 'abcdefg\n'.repeat(128 * 1024)
      await put({ path: 'both' }, Buffer.from(`${filler}first\nsecond\n`))
      await sh(`rm -rf link hard; ln -s both link; ln both hard; mkdir -p folder; ln -sfn . alias`)
      const edit = (path: string, old: string) =>
        alice.call('editFile', { params, body: { path, old: `${old}\n`, new: `${old} edited\n` } })
      await Promise.all([edit('both', 'first'), edit(name, 'second')])
      expect(await printed('tail -n 2 both')).toBe('first edited\nsecond edited\n')
    }
  })

  test('who meets a file that is half-written over waits until it is whole', async () => {
    const whole = 'first\nsecond\n'
    const body = { path: 'other', old: 'second', new: 'edited' }
    const ways = {
      edit: () => alice.call('editFile', { params, body }),
      'edit what is meant': () =>
        alice.call('editFile', { params, body: { ...body, if_match: sha256(whole) } }),
      'write what is meant': () =>
        put({ path: 'other' }, Buffer.from('first\nedited\n'), { 'if-match': `"${sha256(whole)}"` }),
    }
    for (const [name, ask] of Object.entries(ways)) {
      await sh('rm -f written other go; : >written; ln written other')
      // As a write does it, for as long as the test wants.
      const lock =
        'if command -v flock >/dev/null; then flock 8; else ln -s /proc/$$/cmdline /tmp/.sandlot-turn; fi'
      const write = `printf first >written; until [ -e go ]; do sleep 0.2; done; printf '${whole}' >written`
      const command = `exec 8<"$HOME"; ${lock}; ${write}; rm -f /tmp/.sandlot-turn`
      await alice.call('execCommand', { params, body: { command, background: true } })
      await world.eventually(async () => (await printed('cat other')) === 'first', 10_000)
      let isOver = false
      const answer = toldBy(ask, ({ status }) => status).finally(() => {
        isOver = true
      })
      await world.eventually(async () => isOver || (await countOf('slee[p] 0.05')) > 0, 10_000)
      await sh(': >go')
      expect(await answer, name).toBeOneOf([200, 201])
      expect(await printed('cat written'), name).toBe('first\nedited\n')
    }
  })

  test('a folder that was made while a file came is no place for it', async () => {
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

  test('a lock that its shell left behind stands in nobody’s way', async () => {
    await sh('ln -s /proc/999999999/cmdline /tmp/.sandlot-turn')
    expect((await put({ path: 'free' }, Buffer.from('x'))).status).toBe(201)
    await sh('rm -f /tmp/.sandlot-turn')
  })
})
