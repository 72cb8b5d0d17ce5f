import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import type { CallOptions } from '../support/account.ts'
import { describeOnEveryImageAtOnce } from '../support/drivers.ts'
import { shareSandbox } from '../support/shared.ts'

describeOnEveryImageAtOnce('changing and searching files', ({ driver, env }) => {
  const { alice, params, ...inside } = shareSandbox({ driver, env })

  const create = (path: string, content: string) =>
    alice.call('createFile', { params, body: { path, content, overwrite: true } })
  const edit = async (body: CallOptions<'editFile'>['body']) =>
    (await alice.call('editFile', { params, ...(body ? { body } : {}) })).body
  const ls = async (query: CallOptions<'listFiles'>['query'] = {}) =>
    (await alice.call('listFiles', { params, query })).body
  const glob = async (query: CallOptions<'globFiles'>['query']) =>
    (await alice.call('globFiles', { params, ...(query ? { query } : {}) })).body
  const grep = async (query: CallOptions<'grepFiles'>['query']) =>
    (await alice.call('grepFiles', { params, ...(query ? { query } : {}) })).body
  const sh = async (line: string) => {
    const result = await inside.sh(line)
    expect(result).toMatchObject({ status: 'exited', exit_code: 0, stderr: '' })
    return result.stdout
  }
  const ownerOf = async (path: string) => {
    const [uid, gid, owner, group] = (await sh(`stat -c '%u %g %U %G' '${path}'`)).trim().split(' ')
    const nameOf = (name?: string) => (name === 'UNKNOWN' ? null : name)
    return { uid: Number(uid), gid: Number(gid), owner: nameOf(owner), group: nameOf(group) }
  }
  const sha256 = (text: string) => hash('sha256', text)

  test("an edit replaces the only match and keeps the file's mode and other content", async () => {
    await create('edited', 'one\ntwo\nthree')
    await sh('chmod 750 edited')
    const content = 'one\n2 ä\nthree'
    expect(await edit({ path: 'edited', old: 'two', new: '2 ä' })).toEqual({
      path: '/workspace/edited',
      size: Buffer.byteLength(content),
      sha256: sha256(content),
      replacements: 1,
    })
    expect(await sh('cat edited; echo; stat -c %a edited; ls -a | grep -c sandlot || true')).toBe(
      `${content}\n750\n0\n`,
    )
  })

  test('an edit whose search text is missing or not unique changes nothing, and its error lists the candidates', async () => {
    await create('several', 'a\nsame\nb\nsame\n  other(\n')
    await expect(edit({ path: 'several', old: 'same', new: 'x' })).rejects.toMatchObject({
      status: 409,
      code: 'edit_not_unique',
      problem: { matches: 2, lines: [2, 4] },
    })
    await expect(edit({ path: 'several', old: 'other(\n\n', new: 'x' })).rejects.toMatchObject({
      status: 409,
      code: 'edit_no_match',
      problem: { matches: 0, lines: [], similar_lines: [5] },
    })
    expect(await sh('cat several')).toBe('a\nsame\nb\nsame\n  other(\n')
    expect(await edit({ path: 'several', old: 'same', new: '', replace_all: true })).toMatchObject({
      replacements: 2,
    })
    expect(await sh('cat several')).toBe('a\n\nb\n\n  other(\n')
  })

  test('an edit keeps the Windows line endings of a file', async () => {
    await create('windows', 'one\r\ntwo\r\nthree\r\n')
    await edit({ path: 'windows', old: 'one\ntwo', new: '1\n2\n2.5' })
    expect(await sh('cat windows')).toBe('1\r\n2\r\n2.5\r\nthree\r\n')
  })

  test('rejects an edit of a file larger than 16 MiB and names the route for large files', async () => {
    await sh(
      `head -c ${limits.editBytes} /dev/zero >largest; printf old >>largest; head -c 100 /dev/zero | tr '\\0' a >small`,
    )
    await expect(edit({ path: 'largest', old: 'old', new: '' })).rejects.toMatchObject({
      status: 400,
      code: 'invalid_request',
      problem: { detail: expect.stringMatching(/limit of 16 MiB .* files\/raw/) },
    })
    const grown = { path: 'small', old: 'a', new: 'x'.repeat(limits.editBytes / 100 + 1), replace_all: true }
    await expect(edit(grown)).rejects.toMatchObject({ status: 400, code: 'invalid_request' })
    await sh('rm largest small')
  })

  const writes: Record<string, (path: string, content: string) => Promise<unknown>> = {
    edit: async (path, content) =>
      edit({
        path,
        old: (await alice.call('viewFile', { params, query: { path } })).body.content,
        new: content,
      }),
    create,
    put: (path, content) =>
      alice.call('writeRawFile', { params, query: { path }, bytes: Buffer.from(content) }),
  }

  test('the error for an edit of a read-only file says that the file is read-only', async () => {
    await create('shut', 'old')
    await sh('chmod a-w shut')
    for (const [way, write] of Object.entries(writes)) {
      await expect(write('shut', 'new'), way).rejects.toMatchObject({
        status: 403,
        code: 'permission_denied',
      })
      await expect(write('/etc/passwd', 'new'), way).rejects.toMatchObject({ code: 'read_only' })
    }
    expect(await sh('cat shut; stat -c %a shut; ls -a | grep -c sandlot || true')).toBe('old444\n0\n')
  })

  test('an edit overwrites a file in place if it has hard links or its folder is read-only', async () => {
    await sh('mkdir twice; echo long before >twice/a; ln twice/a twice/b; chmod 640 twice/a')
    await sh('mkdir only; echo long before >only/a; chmod 640 only/a; chmod a-w only')
    for (const [way, write] of Object.entries(writes)) {
      for (const folder of ['twice', 'only']) {
        await write(`${folder}/a`, way)
        expect(await sh(`cat ${folder}/a; stat -c ' %a %h' ${folder}/a`)).toBe(
          `${way} 640 ${folder === 'twice' ? 2 : 1}\n`,
        )
      }
      expect(await sh('cat twice/b; ls -A twice only; ls -A /tmp | grep -c sandlot || true')).toBe(
        `${way}only:\na\n\ntwice:\na\nb\n0\n`,
      )
    }
    const query = { path: 'twice/b', mode: '600' }
    await alice.call('writeRawFile', { params, query, bytes: Buffer.from('mode') })
    expect(await sh("stat -c '%a %h' twice/a; cat twice/a")).toBe('600 2\nmode')
    await expect(create('only/b', '')).rejects.toMatchObject({ code: 'permission_denied' })
  })

  test('an edit through a symbolic link changes the target and keeps the link', async () => {
    await create('linked/real', 'old')
    await sh('ln -sf linked/real link')
    await edit({ path: 'link', old: 'old', new: 'new' })
    expect(await sh('readlink link; cat linked/real')).toBe('linked/real\nnew')
  })

  test('returns a specific error for each kind of path that cannot be edited', async () => {
    await sh('mkdir -p dir; rm -f pipe; mkfifo pipe')
    const body = { old: 'x', new: 'y' }
    const refusals = [
      ['nowhere', 404, 'file_not_found'],
      ['dir', 409, 'is_directory'],
      ['pipe', 400, 'invalid_request'],
    ] as const
    for (const [path, status, code] of refusals)
      await expect(edit({ ...body, path })).rejects.toMatchObject({ status, code })
  })

  test('lists a directory sorted by name, with the metadata of each entry', async () => {
    await sh(`mkdir -p list && cd list && printf abc > 'b b' && mkdir a && ln -s '../no where' l && mkfifo p
      chmod 640 'b b'; chmod g-s a; chmod 1777 a; touch -d '2020-01-02 03:04:05' 'b b'; printf x > .hidden`)
    const { path, entries, truncated } = await ls({ path: 'list' })
    expect({ path, truncated }).toEqual({ path: '/workspace/list', truncated: false })
    expect(entries.map(({ name, type }) => `${name} ${type}`)).toEqual([
      '.hidden file',
      'a directory',
      'b b file',
      'l symlink',
      'p fifo',
    ])
    expect(entries[1]).toMatchObject({ mode: '1777' })
    expect(entries[2]).toEqual({
      name: 'b b',
      type: 'file',
      size: 3,
      mode: '640',
      ...(await ownerOf('list/b b')),
      modified_at: '2020-01-02T03:04:05.000Z',
    })
    expect(entries[3]).toMatchObject({ target: '../no where' })
    expect((await ls({ path: 'list/b b' })).entries).toEqual([entries[2]])
    expect((await ls({ path: 'list/l' })).entries).toMatchObject([{ name: 'l', target: '../no where' }])
    await expect(ls({ path: 'list/none' })).rejects.toMatchObject({ code: 'file_not_found' })
    await sh('mkdir -p list/closed; chmod 000 list/closed')
    await expect(ls({ path: 'list/closed' })).rejects.toMatchObject({ code: 'permission_denied' })
  })

  test('lists several directory levels, with paths that other requests accept', async () => {
    await sh(
      `mkdir -p deep/a/b deep/.h; touch deep/a/b/c deep/.h/x "deep/a/$(printf 'o\\377')"; ln -s a deep/l`,
    )
    const paths = async (query: CallOptions<'listFiles'>['query']) =>
      (await ls(query)).entries.map(({ path, type }) => `${path} ${type}`)
    const two = ['.h directory', '.h/x file', 'a directory', 'a/b directory', 'a/o\ufffd file', 'l symlink']
    expect(await paths({ path: 'deep', depth: 2 })).toEqual(two.map((line) => `deep/${line}`))
    expect(await paths({ path: '/workspace/deep/a/', depth: '9' })).toEqual([
      '/workspace/deep/a/b directory',
      '/workspace/deep/a/b/c file',
      '/workspace/deep/a/o\ufffd file',
    ])
    const odd = (await ls({ path: 'deep', depth: 2 })).entries[4]!
    expect(Buffer.from(odd.path_base64!, 'base64').toString('latin1')).toBe('deep/a/o\xff')
    for (const depth of [0, limits.listed.depth + 1, '1x'])
      await expect(ls({ path: 'deep', depth })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('lists, finds and opens files whose names contain arbitrary bytes', async () => {
    await sh(`mkdir -p odd; cd odd; for n in "$(printf 'bad\\377')" "it's" 'a
b' -n ' ' '*' "$(printf 'c\\001:1:')"; do echo needle > "./$n"; ln -sf "$n" "./l $n"; done`)
    const names = [' ', '*', '-n', 'a\nb', 'bad\ufffd', 'c\u0001:1:', "it's"]
    const bad = Buffer.from('bad\xff', 'latin1').toString('base64')
    const { entries } = await ls({ path: 'odd' })
    expect(entries.filter(({ type }) => type === 'file').map(({ name }) => name)).toEqual(names)
    expect(entries.find(({ name }) => name === 'bad\ufffd')).toMatchObject({ name_base64: bad })
    expect(entries.find(({ name }) => name === 'l a\nb')).toMatchObject({ target: 'a\nb' })
    expect(await glob({ pattern: '[!l]*', path: 'odd' })).toEqual({
      paths: names,
      paths_base64: { 4: bad },
      truncated: false,
    })
    const { matches } = await grep({ pattern: 'needle', path: 'odd' })
    expect(matches.map(({ path }) => path)).toEqual(names.map((name) => `odd/${name}`))
    const path_base64 = matches[4]!.path_base64!
    expect(await edit({ path_base64, old: 'needle', new: 'thread' })).toMatchObject({
      path: '/workspace/odd/bad\ufffd',
      path_base64: Buffer.from('/workspace/odd/bad\xff', 'latin1').toString('base64'),
    })
    const { body } = await alice.call('viewFile', { params, query: { path_base64 } })
    expect(body.content).toBe('thread\n')
  })

  test('a glob matches paths at any depth, and hidden paths only on request', async () => {
    await sh(`mkdir -p tree/src/deep/er tree/.git tree/other
      cd tree; touch a.ts src/b.ts src/c.js src/deep/er/d.ts src/deep/ä.ts .git/e.ts .env other/f.ts`)
    const found = async (pattern: string) => (await glob({ pattern, path: 'tree' })).paths
    expect(await found('**/*.ts')).toEqual([
      'a.ts',
      'other/f.ts',
      'src/b.ts',
      'src/deep/er/d.ts',
      'src/deep/ä.ts',
    ])
    expect(await found('*.ts')).toEqual(['a.ts'])
    expect(await found('src/**/?.{ts,js}')).toEqual([
      'src/b.ts',
      'src/c.js',
      'src/deep/er/d.ts',
      'src/deep/ä.ts',
    ])
    expect(await found('src/**')).toEqual([
      'src/b.ts',
      'src/c.js',
      'src/deep',
      'src/deep/er',
      'src/deep/er/d.ts',
      'src/deep/ä.ts',
    ])
    expect(await found('*/')).toEqual(['other', 'src'])
    expect((await found('**')).slice(0, 2)).toEqual(['a.ts', 'other'])
    expect(await found('.*')).toEqual(['.env', '.git'])
    expect(await found('.git/*')).toEqual(['.git/e.ts'])
    expect(await found('src/b.ts')).toEqual(['src/b.ts'])
    expect(await found('nowhere/*')).toEqual([])
    await expect(glob({ pattern: '*', path: 'nowhere' })).rejects.toMatchObject({ code: 'file_not_found' })
    await expect(glob({ pattern: '../*' })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('grep searches for a regular expression or plain text, lists matches in path order and skips binary files', async () => {
    await sh(`mkdir -p g/sub; cd g; printf 'Alpha\\nbeta (x)\\n\\nalpha\\n' > b.txt; printf 'alpha beta\\n' > a.md
      printf 'alpha\\0' > sub/binary; printf 'alphabet' > sub/c.txt; touch empty`)
    const lines = async (query: CallOptions<'grepFiles'>['query']) =>
      (await grep({ path: 'g', ...query })).matches.map(({ path, line, text }) => `${path}:${line}:${text}`)
    expect(await grep({ pattern: '^alpha', path: 'g' })).toEqual({
      matches: [
        { path: 'g/a.md', line: 1, text: 'alpha beta' },
        { path: 'g/b.txt', line: 4, text: 'alpha' },
        { path: 'g/sub/c.txt', line: 1, text: 'alphabet' },
      ],
      skipped_binary: ['g/sub/binary'],
      truncated: false,
    })
    expect(await lines({ pattern: 'ALPHA$', ignore_case: 'true' })).toEqual([
      'g/b.txt:1:Alpha',
      'g/b.txt:4:alpha',
    ])
    expect(await lines({ pattern: '(x)', fixed: 'true' })).toEqual(['g/b.txt:2:beta (x)'])
    expect(await lines({ pattern: 'alpha', include: '*.{md,rs}' })).toEqual(['g/a.md:1:alpha beta'])
    expect(await lines({ pattern: 'alpha', include: 'sub/*.txt' })).toEqual(['g/sub/c.txt:1:alphabet'])
    expect(await lines({ pattern: 'beta', path: 'g/a.md' })).toEqual(['g/a.md:1:alpha beta'])
    expect(await lines({ pattern: '-e', fixed: 'true' })).toEqual([])
    await expect(grep({ pattern: '(', path: 'g' })).rejects.toMatchObject({
      code: 'invalid_request',
      problem: { errors: [{ path: 'pattern' }] },
    })
    await expect(grep({ pattern: 'x', path: 'nowhere' })).rejects.toMatchObject({ code: 'file_not_found' })
  })

  test('grep accepts escapes from other regular expression dialects if they have a POSIX equivalent', async () => {
    await sh("mkdir dialects; printf '42\\nd\\na\\tb\\nx-y_1.\\nconcat\\nthe cat\\n f()  {\\n' > dialects/a")
    const lines = async (pattern: string) =>
      (await grep({ path: 'dialects', pattern })).matches.map(({ text }) => text)
    expect(await lines('^\\d+$')).toEqual(['42'])
    expect(await lines('\\t')).toEqual(['a\tb'])
    expect(await lines('^[\\w.-]{4,}$')).toEqual(['x-y_1.', 'concat'])
    expect(await lines('\\bcat\\b')).toEqual(['the cat'])
    expect(await lines('\\Bcat')).toEqual(['concat'])
    expect(await lines('^\\W[^\\W]\\(\\)\\s+{')).toEqual([' f()  {'])
    expect(await lines('^(?:4|d)\\d*?$')).toEqual(['42', 'd'])
    for (const pattern of ['(?i)x', 'c(?=at)', '(a)\\1', '\\x41', '\\p{L}'])
      await expect(grep({ pattern }), pattern).rejects.toMatchObject({
        status: 400,
        code: 'invalid_request',
        problem: { errors: [{ path: 'pattern', message: expect.stringMatching(/^has ".+", which/) }] },
      })
    expect((await grep({ path: 'dialects', pattern: '\\d', fixed: 'true' })).matches).toEqual([])
  })

  test('search results are sorted and truncated at the limit', async () => {
    const { entries: most, matches: maxMatches } = limits.listed
    await sh(
      `mkdir -p many && cd many && seq ${most + 5} | xargs touch; seq ${maxMatches + 5} > 1; seq 2000 | tr -d '\\n' > 9`,
    )
    const sorted = Array.from({ length: most + 5 }, (_, index) => String(index + 1))
      .sort()
      .slice(0, most)
    const listed = await ls({ path: 'many' })
    expect(listed.truncated).toBe(true)
    expect(listed.entries.map(({ name }) => name)).toEqual(sorted)
    const globbed = await glob({ path: 'many', pattern: '*' })
    expect(globbed).toEqual({ paths: sorted, truncated: true })
    const grepped = await grep({ path: 'many', pattern: '.' })
    expect(grepped.truncated).toBe(true)
    expect(grepped.matches).toHaveLength(maxMatches)
    expect(grepped.matches.at(-1)).toEqual({ path: 'many/1', line: maxMatches, text: String(maxMatches) })
    const [cut] = (await grep({ path: 'many', pattern: '.', include: '9' })).matches
    expect(cut?.text).toHaveLength(limits.grepLineBytes)
  })
})
