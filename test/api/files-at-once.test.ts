/** Two operations on one file at the same moment: some order of the two explains what comes of them. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Refusal } from '../support/account.ts'
import { describeOnEveryImageAtOnce } from '../support/drivers.ts'
import { toldBy } from '../support/pairs.ts'
import { rawFiles } from '../support/raw-files.ts'
import { shareSandbox } from '../support/shared.ts'

const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex')
const large = 32 * 1024 * 1024

/** The file, or undefined where there is none. */
type State = { content: string; mode: string } | undefined

interface Operation {
  /** @returns what it was told: a code, or of a read the sha256 */
  run(): Promise<string>
  /** Whether it makes a file that is not there. */
  makes?: boolean
  /** Whether it changes nothing. */
  reads?: boolean
  /** The same on its own. */
  explain(before: State): { told: string; after: State }
}

describeOnEveryImageAtOnce('two operations on one file', ({ driver, env }) => {
  const { world, alice, params, sh, countOf } = shareSandbox({ driver, env })
  const { put, get } = rawFiles({ world, alice, params })
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
      // As a write does it, but for as long as the test wants.
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

  test('every two of them, at once', async () => {
    // Large enough to be looked at for some time.
    const filler = 'abcdefg\n'.repeat(64 * 1024)
    const original = { content: `${filler}first\nsecond\n`, mode: '640' }
    const operations = operationsOn(original.content)
    const filled = 'cp original file; chmod 640 file'
    await put({ path: 'original' }, Buffer.from(original.content))
    for (const [index, one] of operations.entries()) {
      for (const other of operations.slice(index)) {
        if (one.reads && other.reads) continue
        for (const before of one.makes || other.makes ? [original, undefined] : [original]) {
          await sh(`rm -f file link; ln -s file link; ${before ? filled : ''}`)
          const told = await Promise.all([one.run(), other.run()])
          const after = await printed(
            'cat file 2>/dev/null | sha256sum; stat -c %a file; ls -A | grep sandlot',
          )
          const inOrder = explain(before, one, other)
          const reversed = explain(before, other, one)
          expect([inOrder, { ...reversed, told: reversed.told.toReversed() }]).toContainEqual({ told, after })
        }
      }
    }
  })

  function explain(before: State, one: Operation, other: Operation) {
    const first = one.explain(before)
    const second = other.explain(first.after)
    const { content, mode } = second.after ?? { content: '', mode: undefined }
    const after = `${sha256(content)}  -\n${mode === undefined ? '' : `${mode}\n`}`
    return { told: [first.told, second.told], after }
  }

  function operationsOn(original: string): Operation[] {
    const isMeant = (before: State) => before?.content === original
    const write = (
      content: string,
      query: Record<string, string>,
      onlyIf = (_: State) => true,
    ): Operation => ({
      run: async () => {
        const headers: Record<string, string> =
          onlyIf === isMeant ? { 'if-match': `"${sha256(original)}"` } : {}
        const { body } = await put({ path: 'file', ...query }, Buffer.from(content), headers)
        return String(body.code ?? 'done')
      },
      makes: onlyIf !== isMeant,
      explain(before) {
        if (query.overwrite === 'false' && before) return { told: 'file_exists', after: before }
        if (!onlyIf(before)) return { told: 'file_changed', after: before }
        return { told: 'done', after: { content, mode: query.mode ?? before?.mode ?? '644' } }
      },
    })
    const edit = (path: string, old: string, onlyIf = (_: State) => true): Operation => ({
      run: async () => {
        const if_match = onlyIf === isMeant ? sha256(original) : undefined
        const body = { path, old, new: old.toUpperCase(), if_match }
        const call = alice.call('editFile', { params, body })
        return call.then(() => 'done').catch((error: Refusal) => error.code)
      },
      explain(before) {
        if (!before) return { told: 'file_not_found', after: before }
        if (!onlyIf(before)) return { told: 'file_changed', after: before }
        const content = before.content.replace(old, old.toUpperCase())
        if (content === before.content) return { told: 'edit_no_match', after: before }
        return { told: 'done', after: { ...before, content } }
      },
    })
    const create = (content: string): Operation => ({
      run: async () => {
        const call = alice.call('createFile', { params, body: { path: 'file', content } })
        return call.then(() => 'done').catch((error: Refusal) => error.code)
      },
      makes: true,
      explain: (before) =>
        before ? { told: 'file_exists', after: before } : { told: 'done', after: { content, mode: '644' } },
    })
    const read = (run: () => Promise<string>): Operation => ({
      run,
      reads: true,
      explain: (before) => ({ told: before ? sha256(before.content) : 'file_not_found', after: before }),
    })
    return [
      write('with a mode\n', { mode: '600' }),
      write('by its link\n', { path: 'link' }),
      write('new\n', { overwrite: 'false' }),
      write('instead\n', {}, isMeant),
      create('made\n'),
      edit('file', 'first'),
      edit('link', 'second'),
      edit('file', 'first', isMeant),
      read(async () => {
        const call = alice.call('viewFile', { params, query: { path: 'file' } })
        return call.then(({ body }) => body.sha256).catch((error: Refusal) => error.code)
      }),
      read(async () => {
        const answer = await get('file')
        if (answer.status === 404) return 'file_not_found'
        return sha256(Buffer.from(await answer.arrayBuffer()))
      }),
    ]
  }
})
