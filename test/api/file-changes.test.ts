/** Reading the entry of a path, creating directories, and moving, removing and changing the mode of files. */
import { expect, test } from 'vitest'
import type { CallOptions } from '../support/account.ts'
import { describeOnEveryImageAtOnce } from '../support/drivers.ts'
import { shareSandbox } from '../support/shared.ts'

type Body<N extends 'makeDirectory' | 'moveFile' | 'removeFile' | 'changeFileMode'> = NonNullable<
  CallOptions<N>['body']
>

describeOnEveryImageAtOnce('changing paths', ({ driver, env }) => {
  const { alice, params, ...inside } = shareSandbox({ driver, env })

  const stat = async (query: NonNullable<CallOptions<'statFile'>['query']>) =>
    (await alice.call('statFile', { params, query })).body
  const mkdir = async (body: Body<'makeDirectory'>) =>
    (await alice.call('makeDirectory', { params, body })).body
  const move = async (body: Body<'moveFile'>) => (await alice.call('moveFile', { params, body })).body
  const remove = async (body: Body<'removeFile'>) => (await alice.call('removeFile', { params, body })).body
  const chmod = async (body: Body<'changeFileMode'>) =>
    (await alice.call('changeFileMode', { params, body })).body
  const sh = async (line: string) => {
    const result = await inside.sh(line)
    expect(result).toMatchObject({ status: 'exited', exit_code: 0, stderr: '' })
    return result.stdout
  }
  const refuses = async (attempt: Promise<unknown>, code: string, detail: RegExp = /./) =>
    await expect(attempt).rejects.toMatchObject({
      code,
      problem: { detail: expect.stringMatching(detail) },
    })
  /** A path with a name that is not UTF-8, in base64. */
  const odd = (name: string) => Buffer.from(`${name}\xff`, 'latin1').toString('base64')

  test('stat returns the entry for a file, directory or link, and does not follow links', async () => {
    await sh(`mkdir -p st; printf abc >st/f; chmod 640 st/f; ln -s st/f l; ln -s no dangling
      touch -d '2020-01-02 03:04:05' st/f; touch "st/$(printf 'o\\377')"`)
    const [uid, gid] = (await sh("stat -c '%u %g' st/f")).trim().split(' ').map(Number)
    expect(await stat({ path: 'st/f' })).toMatchObject({
      ...{ path: '/workspace/st/f', name: 'f', type: 'file', size: 3, mode: '640', uid, gid },
      modified_at: '2020-01-02T03:04:05.000Z',
    })
    expect(await stat({ path: 'st/' })).toMatchObject({ name: 'st', type: 'directory' })
    expect(await stat({ path: 'l' })).toMatchObject({ name: 'l', type: 'symlink', target: 'st/f' })
    expect(await stat({ path: 'dangling' })).toMatchObject({ type: 'symlink', target: 'no' })
    const [rootUid, rootOwner] = (await sh("stat -c '%u %U' /")).trim().split(' ')
    const root = { path: '/', name: '/', type: 'directory', uid: Number(rootUid), owner: rootOwner }
    expect(await stat({ path: '/' })).toMatchObject(root)
    expect(await stat({ path: '/workspace' })).toMatchObject({ name: 'workspace', type: 'directory' })
    expect(await stat({ path_base64: odd('st/o') })).toMatchObject({
      path_base64: odd('/workspace/st/o'),
      name_base64: odd('o'),
    })
    await refuses(stat({ path: 'none' }), 'file_not_found')
    await sh('mkdir shut; chmod 000 shut')
    await refuses(stat({ path: 'shut/f' }), 'permission_denied')
  })

  test('mkdir creates parents, and accepts an existing directory only with exist_ok', async () => {
    expect(await mkdir({ path: 'm/a/b', mode: '700' })).toEqual({ path: '/workspace/m/a/b', created: true })
    expect(await sh("stat -c '%A' m/a/b")).toMatch(/^drwx--[-sS]/)
    expect(await sh("stat -c '%A' m/a")).toMatch(/^drwxr-[xs]r-x/)
    await refuses(mkdir({ path: 'm/a/b' }), 'file_exists', /exist_ok: true/)
    expect(await mkdir({ path: 'm/a/b', exist_ok: true })).toMatchObject({ created: false })
    expect(await sh("stat -c '%A' m/a/b")).toMatch(/^drwx--[-sS]/)
    await refuses(mkdir({ path: '/' }), 'file_exists', /exist_ok/)
    expect(await mkdir({ path: '/workspace', exist_ok: true })).toMatchObject({ created: false })
    await sh('touch m/f; ln -s nowhere m/l; ln -s a m/la')
    await refuses(mkdir({ path: 'm/f', exist_ok: true }), 'file_exists', /not a directory/)
    await refuses(mkdir({ path: 'm/l', exist_ok: true }), 'file_exists', /not a directory/)
    await refuses(mkdir({ path: 'm/f/below' }), 'file_exists', /component/)
    expect(await mkdir({ path: 'm/la', exist_ok: true })).toMatchObject({ created: false })
    await refuses(mkdir({ path: '/usr/new' }), 'read_only')
    await sh('mkdir m/shut; chmod a-w m/shut')
    await refuses(mkdir({ path: 'm/shut/new' }), 'permission_denied')
    await mkdir({ path_base64: odd('m/o') })
    expect(await sh('ls m | grep -c "^o"')).toBe('1\n')
    await refuses(mkdir({ path: 'x'.repeat(256) }), 'invalid_request')
  })

  test('move renames files, directories and links, and replaces a file only on request', async () => {
    await sh('mkdir -p mv/d/e; echo one >mv/f; echo two >mv/g; ln -s f mv/l; touch mv/d/d; chmod 600 mv/f')
    await refuses(move({ path: 'mv/f', to: 'mv/g' }), 'file_exists', /overwrite: true/)
    expect(await move({ path: 'mv/f', to: 'mv/g', overwrite: true })).toEqual({ path: '/workspace/mv/g' })
    expect(await sh('cat mv/g; stat -c %a mv/g; ls mv')).toBe('one\n600\nd\ng\nl\n')
    await move({ path: 'mv/g', to: 'mv/new/parent/f' })
    await move({ path: 'mv/d', to: 'mv/new/d' })
    await move({ path: 'mv/l', to: 'mv/new/l' })
    expect(await sh('readlink mv/new/l; find mv | sort')).toBe(
      'f\nmv\nmv/new\nmv/new/d\nmv/new/d/d\nmv/new/d/e\nmv/new/l\nmv/new/parent\nmv/new/parent/f\n',
    )
    for (const overwrite of [false, true]) {
      await refuses(move({ path: 'mv/new/parent/f', to: 'mv/new/d', overwrite }), 'is_directory')
      await refuses(move({ path: 'mv/new/d', to: 'mv/new/parent', overwrite }), 'is_directory')
      await refuses(
        move({ path: 'mv/new', to: 'mv/new/d/below', overwrite }),
        'invalid_request',
        /into itself/,
      )
      await refuses(move({ path: 'mv/new', to: 'mv/new', overwrite }), 'invalid_request', /onto itself/)
    }
    await refuses(move({ path: 'mv/none', to: 'mv/made/x' }), 'file_not_found')
    await sh('[ ! -e mv/made ]; mkdir mv/shut; touch mv/shut/f; chmod a-w mv/shut')
    await refuses(move({ path: 'mv/shut/f', to: 'mv/f' }), 'permission_denied')
    await refuses(move({ path: 'mv/new', to: 'mv/shut/new' }), 'permission_denied')
    await refuses(move({ path: 'mv/new', to: '/usr/new' }), 'read_only')
    for (const path of ['/', '/workspace', '/tmp', '/proc'])
      await refuses(move({ path, to: 'mv/moved' }), 'permission_denied', /mount points/)
    await sh(`touch "mv/$(printf 'o\\377')"`)
    await move({ path_base64: odd('mv/o'), to_base64: odd('mv/p') })
    expect(await stat({ path_base64: odd('mv/p') })).toMatchObject({ type: 'file' })
  })

  test('moves between file systems preserve modes, timestamps and links, and leave no temporary files', async () => {
    await sh(`mkdir -p far/d; echo x >far/d/f; chmod 640 far/d/f; ln -s f far/d/l
      touch -d '2020-01-02 03:04:05' far/d/f; echo old >/tmp/old; chmod 600 far/d/f`)
    await move({ path: 'far', to: '/tmp/far' })
    expect(
      await sh("readlink /tmp/far/d/l; stat -c '%a %Y' /tmp/far/d/f; ls -A | grep -c sandlot || true"),
    ).toBe('f\n600 1577934245\n0\n')
    await refuses(stat({ path: 'far' }), 'file_not_found')
    await refuses(move({ path: '/tmp/far/d/f', to: '/workspace' }), 'is_directory')
    await sh('echo there >there')
    await refuses(move({ path: '/tmp/far/d/f', to: 'there' }), 'file_exists')
    await move({ path: '/tmp/far/d/f', to: 'there', overwrite: true })
    expect(await sh('cat there; ls /tmp/far/d; ls -A /tmp . | grep -c sandlot || true')).toBe('x\nl\n0\n')
    await refuses(move({ path: '/etc/passwd', to: 'passwd' }), 'read_only')
    expect(await sh('ls passwd 2>/dev/null || echo none')).toBe('none\n')
    await sh('rm -rf /tmp/far /tmp/old there')
  })

  // Kubernetes evicts a pod that fills its disk.
  test.skipIf(driver === 'kubernetes')(
    'a move to a full file system leaves the source in place',
    async () => {
      await inside.sh('head -c 100000 /dev/zero >full; head -c 2000000000 /dev/zero >/tmp/fill 2>/dev/null')
      await refuses(move({ path: 'full', to: '/tmp/moved' }), 'disk_full')
      expect(await sh('rm /tmp/fill; ls -A /tmp; wc -c <full')).toBe('100000\n')
    },
  )

  test('remove deletes files and links, but deletes directories only with recursive', async () => {
    await sh(
      'mkdir -p rm/d/e rm/kept; touch rm/f rm/d/e/f rm/kept/f; ln -s kept rm/l; ln -s none rm/dangling',
    )
    expect(await remove({ path: 'rm/f' })).toEqual({ path: '/workspace/rm/f', removed: true })
    await refuses(remove({ path: 'rm/f' }), 'file_not_found')
    expect(await remove({ path: 'rm/f', missing_ok: true })).toMatchObject({ removed: false })
    await refuses(remove({ path: 'rm/d', missing_ok: true }), 'is_directory', /recursive: true/)
    await remove({ path: 'rm/l', recursive: true })
    await remove({ path: 'rm/dangling' })
    expect(await remove({ path: 'rm/d', recursive: true })).toMatchObject({ removed: true })
    expect(await sh('find rm | sort')).toBe('rm\nrm/kept\nrm/kept/f\n')
    await sh(`touch "rm/$(printf 'o\\377')"; mkdir rm/shut; touch rm/shut/f; chmod a-w rm/shut`)
    expect(await remove({ path_base64: odd('rm/o') })).toMatchObject({ removed: true })
    await refuses(remove({ path: 'rm/shut/f' }), 'permission_denied')
    await refuses(remove({ path: 'rm/shut', recursive: true }), 'permission_denied')
    await refuses(remove({ path: '/etc/passwd' }), 'read_only')
    await sh('chmod 000 rm/shut')
    await refuses(remove({ path: 'rm/shut/f', missing_ok: true }), 'permission_denied')
    for (const path of ['/', '/workspace', '/tmp', '/proc', 'rm/../.'])
      await refuses(remove({ path, recursive: true }), 'permission_denied', /mount points/)
    expect(await sh('ls rm/kept')).toBe('f\n')
  })

  test('chmod sets exactly the requested mode, and follows links', async () => {
    await sh('mkdir -p ch/d; touch ch/f; ln -s f ch/l; ln -s none ch/dangling; chmod g+s ch/d')
    const modes = ['644', '000', '1777', '700', '0755']
    for (const path of ['ch/f', 'ch/d']) {
      for (const mode of modes) {
        expect(await chmod({ path, mode })).toEqual({ path: `/workspace/${path}`, mode })
        expect(Number(await sh(`stat -c %a ${path}`))).toBe(Number(mode))
      }
    }
    await chmod({ path: 'ch/l', mode: '600' })
    expect(await sh('stat -c %a ch/f')).toBe('600\n')
    await refuses(chmod({ path: 'ch/dangling', mode: '600' }), 'file_not_found')
    await refuses(chmod({ path: 'ch/none', mode: '600' }), 'file_not_found')
    await refuses(chmod({ path: '/etc/passwd', mode: '600' }), 'read_only')
    for (const mode of ['8', '64', 'u+x', '00755', '999'])
      await refuses(chmod({ path: 'ch/f', mode }), 'invalid_request')
  })

  test('rejects a move whose new path is missing or given in both encodings', async () => {
    for (const more of [{}, { to: 'a', to_base64: odd('a') }])
      await refuses(move({ path: 'a', ...more } as Body<'moveFile'>), 'invalid_request')
  })

  test('parses names that resemble the output of `stat` correctly', async () => {
    await sh(`mkdir -p bad; cd bad; touch "$(printf 'x\\n81a4 3 0 0 0')" "$(printf '1 -> 2')"`)
    const { body } = await alice.call('listFiles', { params, query: { path: 'bad' } })
    expect(body.entries.map(({ name, type, size }) => ({ name, type, size }))).toEqual([
      { name: '1 -> 2', type: 'file', size: 0 },
      { name: 'x\n81a4 3 0 0 0', type: 'file', size: 0 },
    ])
  })
})
