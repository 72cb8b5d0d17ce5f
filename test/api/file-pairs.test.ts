/** Two concurrent requests for a file must have the same result as in some sequential order. */
import { hash, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { describeOnEveryImage } from '../support/drivers.ts'
import { isSoak } from '../support/eventually.ts'
import { type Kind, responseOf, tryPairs } from '../support/pairs.ts'
import { rawFiles } from '../support/raw-files.ts'
import { type SharedSandbox, shareSandbox } from '../support/shared.ts'

const fillerLines = 32 * 1024
const original = `${'abcdefg\n'.repeat(fillerLines)}first\nsecond\n`
const sha256 = (bytes: string | Buffer) => hash('sha256', bytes)
const meant = sha256(original)
const ifMeant = { 'if-match': `"${meant}"` }

if (isSoak)
  describeOnEveryImage('all pairs of concurrent file requests, three times', ({ driver, env }) =>
    testFilePairs(shareSandbox({ driver, env }), 3),
  )
else describe('two concurrent requests', () => testFilePairs(shareSandbox({ driver: 'local' }), 1))

function testFilePairs(sandbox: SharedSandbox, rounds: number): void {
  const tryKind = (make: (sandbox: SharedSandbox) => Kind<string>) =>
    tryPairs(make(sandbox), { rounds, concurrency: 3 })
  // A cluster needs several times as long per request.
  const timeout = rounds * 180_000
  test('two concurrent requests for a file take effect one after the other', { timeout }, () =>
    tryKind(files),
  )
  test('two concurrent requests for a missing file take effect one after the other', { timeout }, () =>
    tryKind(missingFiles),
  )
  test('two concurrent requests for a file with two names take effect one after the other', { timeout }, () =>
    tryKind(filesOfTwoNames),
  )
}

const files = (sandbox: SharedSandbox): Kind<string> => {
  const { put, create, edit, run, reads } = operationsIn(sandbox)
  const commands = {
    delete: run('rm file'),
    'move away': run('mv file moved'),
    // Copying the file would read it before the move.
    'move another onto it': run('cp ../original other; echo moved >>other; mv other file'),
  }
  const replacements = {
    'put with a mode': put('file', 'with a mode\n', { mode: '600' }),
    'put a new one': put('file', 'new\n', { overwrite: 'false' }),
    create: create('file', 'made\n'),
  }
  const others = {
    'put by its link': put('link', 'by its link\n'),
    'put if it is unchanged': put('alias/file', 'instead\n', {}, ifMeant),
    'create by another path': create('alias/file', 'made over\n', { overwrite: true }),
    edit: edit('file', 'first'),
    'edit by its link': edit('link', 'second'),
    'edit if it is unchanged': edit('alias/file', 'first', { if_match: meant }),
  }
  return {
    ...folders(sandbox, 'cp ../original file; chmod 640 file'),
    operations: { ...commands, ...replacements, ...reads, ...others },
    isTried: (names) => {
      const has = (group: object) => names.some((name) => name in group)
      const areAll = (group: object) => names.every((name) => name in group)
      // Commands do not take the write lock: see docs/http-api.md#files.
      if (has(commands)) return has(reads) || has(replacements)
      // All replacements look the same to a read.
      return has(reads) ? !areAll(reads) && (has(replacements) || names.includes('edit')) : true
    },
  }
}

const missingFiles = (sandbox: SharedSandbox): Kind<string> => {
  const { put, create, edit, run, reads } = operationsIn(sandbox)
  const { view, get } = reads
  return {
    ...folders(sandbox, ':'),
    operations: {
      view,
      get,
      'put by its link': put('link', 'by its link\n'),
      'put with a mode': put('file', 'with a mode\n', { mode: '600' }),
      'put a new one': put('file', 'new\n', { overwrite: 'false' }),
      'put if it does not exist': put('alias/file', 'none before\n', {}, { 'if-none-match': '*' }),
      'put if it is unchanged': put('file', 'instead\n', {}, ifMeant),
      create: create('file', 'made\n'),
      edit: edit('file', 'made'),
      'make a folder': run('mkdir file'),
    },
    isTried: (names) => !names.every((name) => name in reads),
  }
}

/** Excludes reads. A file with two names is overwritten in place, so a read may return partial content. */
const filesOfTwoNames = (sandbox: SharedSandbox): Kind<string> => {
  const { put, create, edit, run } = operationsIn(sandbox)
  const writes = {
    put: put('file', 'put\n', { mode: '600' }),
    'put by the other name': put('hard', 'by the other name\n'),
  }
  const others = {
    'put if it is unchanged': put('link', 'instead\n', {}, ifMeant),
    'put by the other name if it is unchanged': put('hard', 'instead\n', {}, ifMeant),
    'create by the other name': create('hard', 'made\n', { overwrite: true }),
    edit: edit('file', 'first'),
    'edit by the other name': edit('hard', 'second'),
    'edit by the other name if it is unchanged': edit('hard', 'first', { if_match: meant }),
  }
  return {
    ...folders(sandbox, 'cp ../original file; chmod 640 file; ln file hard'),
    operations: { ...writes, ...others, 'delete one name': run('rm file') },
    isTried: (names) => !names.includes('delete one name') || names.some((name) => name in writes),
  }
}

/** Each pair has a folder. `link` points to `file`, and `alias` points to the folder. */
const folders = ({ sh }: SharedSandbox, fill: string) => {
  const prefix = `pair-${randomUUID().slice(0, 8)}`
  const batches: string[][] = []
  const ready: string[] = []
  let making: Promise<void> | undefined
  // Creates ten folders and removes ten old ones with one command.
  const makeMore = async () => {
    const names = Array.from({ length: 10 }, (_, at) => `${prefix}-${batches.length}-${at}`)
    batches.push(names)
    const original = `{ yes abcdefg | head -n ${fillerLines}; printf 'first\nsecond\n'; } >original`
    const former = `rm -rf ${(batches.at(-6) ?? []).join(' ')}`
    const links = 'ln -s file link && ln -s . alias'
    const each = `( mkdir $name && cd $name && ${links} && { ${fill}; } ) || exit`
    const { exit_code } = await sh(
      `[ -e original ] || ${original}; ${former}; for name in ${names.join(' ')}; do ${each}; done`,
    )
    expect(exit_code).toBe(0)
    ready.push(...names)
  }
  return {
    async make() {
      while (ready.length === 0) {
        making ??= makeMore().finally(() => {
          making = undefined
        })
        await making
      }
      return ready.shift()!
    },
    readState: async (folder: string) => {
      const line =
        "for f in file hard moved; do [ -e $f ] && stat -c '%n %F %a' $f && sha256sum $f; done; ls -A | grep sandlot"
      return (await sh(line, { cwd: folder })).stdout
    },
  }
}

function operationsIn(sandbox: SharedSandbox) {
  const { alice, params, sh } = sandbox
  const { urlOf, authorized, put } = rawFiles(sandbox)
  const lastLines = { start_line: `${fillerLines + 1}` }
  const get =
    (query: object = {}, headers: Record<string, string> = {}) =>
    async (folder: string) => {
      const answer = await fetch(urlOf({ path: `${folder}/file`, ...query }), {
        headers: authorized(headers),
      })
      const body = Buffer.from(await answer.arrayBuffer())
      return [answer.status, answer.headers.get('content-range'), answer.ok && sha256(body)]
    }
  return {
    put:
      (name: string, content: string, query: object = {}, headers: Record<string, string> = {}) =>
      async (folder: string) => {
        const path = `${folder}/${name}`
        const { status, body } = await put({ path, ...query }, Buffer.from(content), headers)
        return [status, body.code]
      },
    create:
      (name: string, content: string, more: object = {}) =>
      (folder: string) => {
        const body = { path: `${folder}/${name}`, content, ...more }
        return responseOf(() => alice.call('createFile', { params, body }))
      },
    edit:
      (name: string, old: string, more: object = {}) =>
      (folder: string) => {
        const body = { path: `${folder}/${name}`, old, new: `${old} edited`, ...more }
        return responseOf(() => alice.call('editFile', { params, body }))
      },
    run: (line: string) => async (folder: string) => (await sh(line, { cwd: folder })).exit_code,
    reads: {
      view: (folder: string) =>
        responseOf(
          () => alice.call('viewFile', { params, query: { path: `${folder}/link`, ...lastLines } }),
          ({ body }) => [body.sha256, body.content],
        ),
      get: get(),
      'get the end': get({}, { range: 'bytes=-10' }),
    },
  }
}
