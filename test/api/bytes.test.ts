/** Random bytes through every way in and out: they come back the same, or are refused, or the answer says so. */
import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { expect, test } from 'vitest'
import { ProblemDetails } from '../../shared/contract/endpoint.ts'
import { bytesOf, readExecEvents } from '../../shared/contract/exec-events.ts'
import { describeOnEveryImageAtOnce } from '../support/drivers.ts'
import { rawFiles } from '../support/raw-files.ts'
import { shareSandbox } from '../support/shared.ts'

const rounds = 12
/** As random as it gets, and bytes that are nearly text, whose faults are few. */
const someBytes = (round: number, size: number): Buffer => {
  const bytes = randomBytes(size)
  if (round % 3 === 0) return bytes
  const text = Buffer.from('žluťoučký 🐎 kůň '.repeat(size), 'utf8').subarray(0, size)
  if (round % 3 === 1) text[round % size] = bytes[0]!
  return text
}
/** A name can hold every byte other than these two. */
const someName = (round: number) =>
  Buffer.from(someBytes(round, 20).map((byte) => (byte === 0 || byte === 47 ? 46 : byte)))
const isText = (bytes: Buffer) => Buffer.from(bytes.toString()).equals(bytes)
const base64 = (bytes: Buffer) => bytes.toString('base64')
const octal = (bytes: Buffer) => [...bytes].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')

describeOnEveryImageAtOnce('bytes', ({ driver, env }) => {
  const { world, alice, params, sh } = shareSandbox({ driver, env })
  const { authorized, urlOf } = rawFiles({ world, alice, params })

  /** What no client of JavaScript sends: a path and a body as bytes. */
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

  test('a body that is not UTF-8 is refused, and told where; one that is comes whole', async () => {
    for (let round = 0; round < rounds; round++) {
      const content = Buffer.from(
        someBytes(round, 40).map((byte) => (byte < 32 || byte === 34 || byte === 92 ? 97 : byte)),
      )
      const [start, end] = ['{"path":"body","overwrite":true,"content":"', '"}'].map((text) =>
        Buffer.from(text),
      )
      const answer = await send('POST', at(`${files}/create`), Buffer.concat([start!, content, end!]))
      if (answer.status === 201) expect((await view(Buffer.from('body'))).content).toBe(content.toString())
      else expect(ProblemDetails.parse(JSON.parse(answer.body.toString())).code).toBe('invalid_request')
      expect(answer.status).toBe(isText(content) ? 201 : 400)
    }
    const body = Buffer.concat([
      Buffer.from('{"path":"p","content":"\ufffdcaf'),
      Buffer.from([0xe9]),
      Buffer.from('"}'),
    ])
    const refused = ProblemDetails.parse(
      JSON.parse((await send('POST', at(`${files}/create`), body)).body.toString()),
    )
    expect(refused.detail).toContain('its byte 29 (0xe9)')
    expect(body[29]).toBe(0xe9)
  })

  test('so is a query', async () => {
    for (let round = 0; round < rounds; round++) {
      const name = someName(round)
      const percent = [...name].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
      const { status } = await send('PUT', at(`${files}/raw?path=${percent}`), Buffer.from('found'))
      expect(status).toBe(isText(name) ? 201 : 400)
      if (status === 201) expect((await view(name)).content).toBe('found')
    }
    const refused = await send('GET', at(`${files}/view?path=caf%e9`))
    expect([refused.status, JSON.parse(refused.body.toString()).errors]).toEqual([
      400,
      [{ path: 'path', message: 'is not UTF-8: its byte 3 (0xe9) begins no character' }],
    ])
    // Node writes each character as one byte.
    const raw = await send('GET', at(`${files}/view?path=${Buffer.from('café').toString('latin1')}`))
    expect(raw.status).toBe(400)
  })

  test('files keep all bytes, of their names too', async () => {
    await sh('mkdir names')
    for (let round = 0; round < rounds; round++) {
      const [name, bytes] = [someName(round), Buffer.concat([Buffer.from('needle'), someBytes(round, 3000)])]
      const path = Buffer.concat([Buffer.from('names/'), name])
      const put = await fetch(urlOf({ path_base64: base64(path) }), {
        method: 'PUT',
        headers: authorized(),
        body: bytes,
      })
      expect(put.status).toBe(201)
      const seen = await view(path)
      expect(Buffer.from(seen.content, seen.encoding as 'base64').equals(bytes)).toBe(true)
      const { body: listed } = await alice.call('listFiles', { params, query: { path_base64: base64(path) } })
      const entry = listed.entries[0]!
      expect(bytesFrom(entry.name, entry.name_base64)).toEqual(name)
      expect(bytesFrom(listed.path, listed.path_base64)).toEqual(
        Buffer.concat([Buffer.from('/workspace/'), path]),
      )
      const { body: globbed } = await alice.call('globFiles', {
        params,
        query: { pattern: '**/*', path: 'names' },
      })
      const globs = globbed.paths.map((each, index) => base64(bytesFrom(each, globbed.paths_base64?.[index])))
      if (name[0] !== 46) expect(globs).toContain(base64(name))
      const { body: found } = await alice.call('grepFiles', {
        params,
        query: { pattern: '^needle', path_base64: base64(path) },
      })
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
  })

  test('so do the targets of links', async () => {
    for (let round = 0; round < rounds; round++) {
      const target = Buffer.concat([Buffer.from('to'), someName(round), Buffer.from('.')])
      await sh(`ln -sfn "$(printf '${octal(target)}')" link`)
      const { body } = await alice.call('listFiles', { params, query: { path: 'link' } })
      expect(bytesFrom(body.entries[0]!.target!, body.entries[0]!.target_base64)).toEqual(target)
    }
  })

  test('a command gets its stdin and gives its output as bytes, and JSON says where it cannot', async () => {
    for (let round = 0; round < rounds; round++) {
      const bytes = someBytes(round, 3000)
      const { body: started } = await alice.call('execCommand', {
        params,
        body: { command: 'cat >in; cat in; cat in >&2', background: true },
      })
      const command = { ...params, exec_id: started.id }
      await alice.call('writeExecStdin', { params: command, query: { eof: 'true' }, bytes })
      const events = await alice.open('streamExec', { params: command })
      const printed = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }
      for await (const event of readExecEvents(events.body!)) {
        if (event.event !== 'stdout' && event.event !== 'stderr') continue
        printed[event.event] = Buffer.concat([printed[event.event], bytesOf(event.data)])
      }
      expect([printed.stdout.equals(bytes), printed.stderr.equals(bytes)]).toEqual([true, true])
      const output = await alice.open('readExecOutput', { params: command, query: { stream: 'stderr' } })
      expect(Buffer.from(await output.arrayBuffer()).equals(bytes)).toBe(true)
      const { body: result } = await alice.call('getExec', { params: command })
      expect(result.lossy).toBe(!isText(bytes))
      if (!result.lossy) expect([result.stdout, result.stderr]).toEqual([bytes.toString(), bytes.toString()])
    }
  })
})

const bytesFrom = (text: string, odd: string | undefined): Buffer =>
  odd === undefined ? Buffer.from(text) : Buffer.from(odd, 'base64')
