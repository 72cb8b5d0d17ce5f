import { hash, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import type { CallOptions } from '../support/account.ts'
import { describeOnBothDriversAtOnce } from '../support/drivers.ts'
import { shareSandbox } from '../support/shared.ts'

describeOnBothDriversAtOnce('files', (driver) => {
  const { alice, params, sh } = shareSandbox({ driver })

  const create = async (body: CallOptions<'createFile'>['body']) =>
    (await alice.call('createFile', { params, ...(body ? { body } : {}) })).body
  const view = async (query: CallOptions<'viewFile'>['query']) =>
    (await alice.call('viewFile', { params, ...(query ? { query } : {}) })).body
  const sha256 = (bytes: string | Buffer) => hash('sha256', bytes)

  test.each([
    ['a file', 'a/b/c.txt', 'one\ntwo\nthree ä\n', 3],
    ['an empty file', 'a/empty', '', 0],
  ])('creates %s and its parent folders', async (_, name, content, total_lines) => {
    const path = `/workspace/${name}`
    const facts = { path, size: Buffer.byteLength(content), sha256: sha256(content) }
    expect(await create({ path: name, content })).toEqual(facts)
    const shown = { content, encoding: 'utf-8', total_lines, truncated: false }
    expect(await view({ path })).toEqual({ ...facts, ...shown })
  })

  test('lines are numbered from 1, and a last line without a newline is counted', async () => {
    await create({ path: 'lines', content: '1\n2\n3\n4' })
    expect(await view({ path: 'lines', start_line: '2', end_line: '3' })).toMatchObject({
      content: '2\n3\n',
      total_lines: 4,
    })
    expect(await view({ path: 'lines', start_line: '4' })).toMatchObject({ content: '4' })
    expect(await view({ path: 'lines', start_line: '9' })).toMatchObject({ content: '', total_lines: 4 })
    expect(await view({ path: 'lines', start_line: '3', end_line: '2' })).toMatchObject({ content: '' })
  })

  test('stores arbitrary bytes, sent raw or as base64, and returns them unchanged', async () => {
    const values = Buffer.from(Array.from({ length: 256 }, (_, value) => value))
    const bytes = Buffer.concat([values, randomBytes(700_000), values])
    await create({ path: 'binary', content: bytes.toString('base64'), encoding: 'base64' })
    const seen = await view({ path: 'binary' })
    expect(seen).toMatchObject({ encoding: 'base64', total_lines: null, sha256: sha256(bytes) })
    expect(Buffer.from(seen.content, 'base64').equals(bytes)).toBe(true)
    const raw = await alice.open('readRawFile', { params, query: { path: 'binary' } })
    expect(Buffer.from(await raw.bytes()).equals(bytes)).toBe(true)
    expect((await sh('sha256sum <binary')).stdout).toBe(`${sha256(bytes)}  -\n`)
  })

  test('viewing a large file truncates the content without splitting a character', async () => {
    const content = `x${'ä'.repeat(1_000_000)}`
    const query = { path: 'large' }
    await alice.call('writeRawFile', { params, query, bytes: Buffer.from(content) })
    const seen = await view({ path: 'large' })
    expect(seen).toMatchObject({
      truncated: true,
      size: 2_000_001,
      sha256: sha256(content),
      encoding: 'utf-8',
    })
    expect(content.startsWith(seen.content)).toBe(true)
    expect(limits.viewBytes - Buffer.byteLength(seen.content)).toBeLessThan(2)
  })

  test('an existing file is overwritten only on request, and its mode is kept', async () => {
    await create({ path: 'script', content: 'old', mode: '755' })
    await expect(create({ path: 'script', content: 'new' })).rejects.toMatchObject({
      status: 409,
      code: 'file_exists',
    })
    expect(await view({ path: 'script' })).toMatchObject({ content: 'old' })
    await create({ path: 'script', content: 'new', overwrite: true })
    expect((await sh('cat script; stat -c %a script')).stdout).toBe('new755\n')
    expect((await sh('ls -a | grep -c sandlot')).stdout).toBe('0\n')
  })

  test('a file created through a dangling symbolic link gets the mode of a new file', async () => {
    await sh('mkdir links && cd links && ln -s new file && ln -s no/folder folder && ln -s itself itself')
    for (const name of ['file', 'folder', 'itself']) {
      await create({ path: `links/${name}`, content: name, overwrite: true })
      expect(await view({ path: `links/${name}` })).toMatchObject({ content: name })
      expect((await sh(`stat -L -c %a links/${name}`)).stdout).toBe('644\n')
    }
  })

  test('returns a specific error for each kind of path that cannot be read or written', async () => {
    await sh('mkdir -p folder; mkfifo pipe; touch secret; chmod 000 secret; touch plain')
    const name = 'x'.repeat(256)
    type Refused = [() => Promise<unknown>, number, string]
    const refusals: Refused[] = [
      [() => view({ path: 'nowhere' }), 404, 'file_not_found'],
      [() => view({ path: 'folder' }), 409, 'is_directory'],
      [() => view({ path: 'secret' }), 403, 'permission_denied'],
      [() => view({ path: 'pipe' }), 400, 'invalid_request'],
      [() => view({ path: '/proc/self/mem' }), 403, 'permission_denied'],
      [() => create({ path: 'folder', content: '', overwrite: true }), 409, 'is_directory'],
      [() => create({ path: 'plain/below', content: '' }), 409, 'file_exists'],
      [() => create({ path: '/usr/new', content: '' }), 403, 'read_only'],
      [() => create({ path: 'x', content: 'no base64!', encoding: 'base64' }), 400, 'invalid_request'],
      ...[name, `${name}/below`, `folder/${'ä'.repeat(128)}`].flatMap((path) =>
        [true, false].map(
          (overwrite): Refused => [() => create({ path, content: '', overwrite }), 400, 'invalid_request'],
        ),
      ),
      ...[
        '/proc/new',
        '/proc/new/below',
        '/proc/1/fd/new',
        '/proc/version',
        '/proc/sys/kernel/new',
        '/proc/self/oom_score_adj',
        '/proc/self/mem',
      ].map(
        (path): Refused => [() => create({ path, content: 'x', overwrite: true }), 403, 'permission_denied'],
      ),
    ]
    for (const [refused, status, code] of refusals)
      await expect(refused()).rejects.toMatchObject({ status, code })
  })

  // Kubernetes evicts a pod with a full disk after a few seconds: see pod-statuses.yaml.
  test.skipIf(driver === 'kubernetes')('creating a file on a full disk leaves no partial file', async () => {
    await sh('head -c 2000000000 /dev/zero > /tmp/fill 2>/dev/null')
    await expect(create({ path: '/tmp/one-more', content: 'x'.repeat(100_000) })).rejects.toMatchObject({
      status: 507,
      code: 'disk_full',
    })
    expect((await sh('rm /tmp/fill; ls -A /tmp')).stdout).toBe('')
  })
})
