/**
 * Sends random bytes through every route, which returns them unchanged, rejects them, or marks them in the
 * response. The gate sends a few bytes with a fixed seed, the soak many with a new seed.
 */
import { request } from 'node:http'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ProblemDetails } from '../../shared/contract/endpoint.ts'
import { bytesOf, type ExecEvent } from '../../shared/contract/exec-events.ts'
import { readJsonEvents } from '../../shared/contract/server-sent-events.ts'
import type { Answer, Refusal } from '../support/account.ts'
import { describeOnEveryImageAtOnce } from '../support/drivers.ts'
import { isSoak } from '../support/eventually.ts'
import { isText, someBytes, someName, someText } from '../support/random-bytes.ts'
import { rawFiles } from '../support/raw-files.ts'
import * as ofRun from '../support/seed.ts'
import { shareSandbox } from '../support/shared.ts'

const base64 = (bytes: Buffer) => bytes.toString('base64')
const octal = (bytes: Buffer) => [...bytes].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
/** The field `odd` contains the bytes in base64 if they are not UTF-8. */
const bytesFrom = (text: string, odd: string | undefined): Buffer =>
  odd === undefined ? Buffer.from(text) : Buffer.from(odd, 'base64')

const { runs, seed } = isSoak ? { runs: 300, seed: ofRun.seed } : { runs: 8, seed: 20_261_124 }
console.info(`bytes: seed ${seed}`)
/** @param share fraction of the runs, for properties that need many requests */
const forAll = <T>(arbitrary: fc.Arbitrary<T>, hold: (value: T) => Promise<void>, share = 1) =>
  fc.assert(fc.asyncProperty(arbitrary, hold), {
    numRuns: Math.ceil(runs * share),
    seed,
    // Shrinking would take hundreds of commands.
    endOnFailure: true,
  })

describeOnEveryImageAtOnce('bytes', ({ driver, env }) => {
  const { world, alice, params, sh } = shareSandbox({ driver, env })
  const { authorized, urlOf } = rawFiles({ world, alice, params })

  /** Sends a path and a body as bytes, which JavaScript clients cannot do. */
  const send = (method: string, path: string, body?: Buffer) =>
    new Promise<{ status: number; body: Buffer }>((resolve, reject) => {
      const url = new URL(world.url())
      const headers = authorized(body ? { 'content-type': 'application/json' } : {})
      const sent = request(
        { host: url.hostname, port: url.port, method, path, headers },
        async (response) => {
          const chunks = await response.toArray()
          resolve({ status: response.statusCode!, body: Buffer.concat(chunks) })
        },
      )
      sent.on('error', reject).end(body)
    })
  const files = `/v1/sandboxes/:id/files`
  const at = (path: string) => path.replace(':id', params.id)
  const view = async (name: Buffer) =>
    (await alice.call('viewFile', { params, query: { path_base64: base64(name) } })).body

  test('accepts UTF-8 bodies unchanged and rejects bodies in any other encoding', () =>
    forAll(someBytes, async (bytes) => {
      const content = Buffer.from(bytes.map((byte) => (byte < 32 || byte === 34 || byte === 92 ? 97 : byte)))
      const [start, end] = ['{"path":"body","overwrite":true,"content":"', '"}'].map((text) =>
        Buffer.from(text),
      )
      const answer = await send('POST', at(`${files}/create`), Buffer.concat([start!, content, end!]))
      if (answer.status === 201) expect((await view(Buffer.from('body'))).content).toBe(content.toString())
      else expect(ProblemDetails.parse(JSON.parse(answer.body.toString())).code).toBe('invalid_request')
      expect(answer.status).toBe(isText(content) ? 201 : 400)
    }))

  test('accepts UTF-8 queries unchanged and rejects queries in any other encoding', () =>
    forAll(someName, async (name) => {
      const percent = [...name].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
      const { status } = await send('PUT', at(`${files}/raw?path=${percent}`), Buffer.from('found'))
      expect(status).toBe(isText(name) ? 201 : 400)
      if (status === 201) expect((await view(name)).content).toBe('found')
    }))

  test('the error for invalid UTF-8 contains the position of the invalid byte', async () => {
    const body = Buffer.from('{"path":"p","content":"\ufffdcaf\xe9"}')
    const latin = Buffer.from([...body.subarray(0, -4), 0xe9, ...body.subarray(-2)])
    const { detail } = JSON.parse((await send('POST', at(`${files}/create`), latin)).body.toString())
    expect(detail).toContain('its byte 29 (0xe9)')
    expect(latin[29]).toBe(0xe9)
    const refused = await send('GET', at(`${files}/view?path=caf%e9`))
    expect([refused.status, JSON.parse(refused.body.toString()).errors]).toEqual([
      400,
      [{ path: 'path', message: 'is not UTF-8: its byte 3 (0xe9) is not the beginning of a character' }],
    ])
    // Node writes each character as one byte.
    const raw = await send('GET', at(`${files}/view?path=${Buffer.from('café').toString('latin1')}`))
    expect(raw.status).toBe(400)
  })

  test('file contents and file names are preserved byte for byte', async () => {
    await sh('mkdir names')
    await forAll(
      fc.tuple(someName, someBytes),
      async ([name, some]) => {
        const bytes = Buffer.concat([Buffer.from('needle'), some])
        const path = Buffer.concat([Buffer.from('names/'), name])
        const url = urlOf({ path_base64: base64(path) })
        const put = await fetch(url, { method: 'PUT', headers: authorized(), body: bytes })
        expect(put.status).toBe(201)
        const seen = await view(path)
        expect(Buffer.from(seen.content, seen.encoding as 'base64').equals(bytes)).toBe(true)
        const raw = await fetch(url, { headers: authorized({ range: `bytes=3-${bytes.length}` }) })
        expect(Buffer.from(await raw.arrayBuffer()).equals(bytes.subarray(3))).toBe(true)
        await mustBeListed(path, name)
        await mustBeFound(path, bytes)
      },
      0.3,
    )
  })

  async function mustBeListed(path: Buffer, name: Buffer) {
    const { body: listed } = await alice.call('listFiles', { params, query: { path_base64: base64(path) } })
    const entry = listed.entries[0]!
    expect(bytesFrom(entry.name, entry.name_base64)).toEqual(name)
    expect(bytesFrom(listed.path, listed.path_base64)).toEqual(
      Buffer.concat([Buffer.from('/workspace/'), path]),
    )
    const query = { pattern: '**/*', path: 'names' }
    const { body: globbed } = await alice.call('globFiles', { params, query })
    const globs = globbed.paths.map((each, index) => base64(bytesFrom(each, globbed.paths_base64?.[index])))
    if (name[0] !== 46) expect(globs).toContain(base64(name))
  }

  async function mustBeFound(path: Buffer, bytes: Buffer) {
    const query = { pattern: '^needle', path_base64: base64(path) }
    const { body: found } = await alice.call('grepFiles', { params, query })
    if (bytes.includes(0)) {
      expect(bytesFrom(found.skipped_binary[0]!, found.skipped_binary_base64?.[0])).toEqual(path)
    } else {
      const { text, text_base64 } = found.matches[0]!
      const line = bytes.subarray(0, bytes.includes(10) ? bytes.indexOf(10) : undefined)
      const shown = bytesFrom(text, text_base64)
      expect(line.subarray(0, shown.length)).toEqual(shown)
      expect(shown.length).toBeGreaterThan(Math.min(line.length, 2000) - 4)
    }
  }

  test('the targets of symbolic links are preserved byte for byte', () =>
    forAll(someName, async (name) => {
      const target = Buffer.concat([Buffer.from('to'), name, Buffer.from('.')])
      await sh(`ln -sfn "$(printf '${octal(target)}')" link`)
      const { body } = await alice.call('listFiles', { params, query: { path: 'link' } })
      expect(bytesFrom(body.entries[0]!.target!, body.entries[0]!.target_base64)).toEqual(target)
    }))

  test('commands can read and print arbitrary bytes, and JSON responses mark output that is not UTF-8', () =>
    forAll(someBytes, async (bytes) => {
      const { body: started } = await alice.call('execCommand', {
        params,
        body: { command: 'cat >in; cat in; cat in >&2', background: true },
      })
      const command = { ...params, exec_id: started.id }
      await alice.call('writeExecStdin', { params: command, query: { eof: 'true' }, bytes })
      const events = await alice.open('streamExec', { params: command })
      const printed = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }
      for await (const event of readJsonEvents<ExecEvent>(events.body!)) {
        if (event.event !== 'stdout' && event.event !== 'stderr') continue
        printed[event.event] = Buffer.concat([printed[event.event], bytesOf(event.data)])
      }
      expect([printed.stdout.equals(bytes), printed.stderr.equals(bytes)]).toEqual([true, true])
      const output = await alice.open('readExecOutput', { params: command, query: { stream: 'stderr' } })
      expect(Buffer.from(await output.arrayBuffer()).equals(bytes)).toBe(true)
      const { body: result } = await alice.call('getExec', { params: command })
      expect(result.lossy).toBe(!isText(bytes))
      if (!result.lossy) expect([result.stdout, result.stderr]).toEqual([bytes.toString(), bytes.toString()])
    }))

  /** Returns undefined if the text was rejected. */
  async function unlessRefused<T>(call: Promise<Answer<T>>): Promise<T | undefined> {
    return await call.then(
      ({ body }) => body,
      (error: Refusal) => {
        expect(error.code).toBe('invalid_request')
        return undefined
      },
    )
  }
  /** The content is base64 if the file contains a NUL byte. */
  const textOf = async (name: string) => {
    const { content, encoding } = await view(Buffer.from(name))
    return Buffer.from(content, encoding as 'base64').toString()
  }
  /** An argv cannot contain NUL, and half a surrogate pair is not valid Unicode. */
  const isArgument = (text: string) => text.isWellFormed() && !text.includes('\0')

  test('each string in a JSON request is either preserved exactly or rejected', () =>
    forAll(
      fc.tuple(someText, someText),
      async ([one, other]) => {
        const run = { command: ['printf', '%s', one], env: { OTHER: other }, stdin: other }
        const ran = await unlessRefused(alice.call('execCommand', { params, body: run }))
        expect(ran?.stdout).toBe(isArgument(one) && isArgument(other) ? one : undefined)
        const printed = await unlessRefused(
          alice.call('execCommand', {
            params,
            body: { command: 'cat; printf %s "$OTHER" >&2', env: { OTHER: one }, stdin: other },
          }),
        )
        const isFit = isArgument(one) && other.isWellFormed()
        expect(printed && [printed.stdout, printed.stderr]).toEqual(isFit ? [other, one] : undefined)
        const file = { path: 'text', content: other, overwrite: true }
        const made = await unlessRefused(alice.call('createFile', { params, body: file }))
        expect(made !== undefined).toBe(other.isWellFormed())
        if (made) expect(await textOf('text')).toBe(other)
        const edit = { path: 'edited', old: 'here', new: one }
        await alice.call('createFile', {
          params,
          body: { path: 'edited', content: '<here>', overwrite: true },
        })
        const edited = await unlessRefused(alice.call('editFile', { params, body: edit }))
        expect(edited !== undefined).toBe(one.isWellFormed())
        if (edited) expect(await textOf('edited')).toBe(`<${one}>`)
        const kept = await unlessRefused(alice.call('createSecret', { body: { name: 'KEPT', value: one } }))
        expect(kept !== undefined).toBe(isArgument(one) && one !== '')
        if (!kept) return
        const revealed = await alice.call('execCommand', {
          params,
          body: { command: 'printf %s "$KEPT"', reveal: true },
        })
        expect(revealed.body.stdout).toBe(one)
        await alice.call('deleteSecret', { params: { name: 'KEPT' } })
      },
      0.5,
    ))
})
