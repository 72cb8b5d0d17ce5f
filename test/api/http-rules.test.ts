/** HTTP conditions, ranges and encodings: a route supports them, or rejects them explicitly. */
import { createHash, randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { endpoints } from '../../shared/contract/index.ts'
import { pathOf } from '../support/account.ts'
import { describeOnBothDrivers } from '../support/drivers.ts'
import { rawFiles } from '../support/raw-files.ts'
import { shareSandbox } from '../support/shared.ts'

const tagOf = (bytes: string | Buffer) => `"${createHash('sha256').update(bytes).digest('hex')}"`

describeOnBothDrivers('a raw file', (driver) => {
  const { world, alice, params, sh } = shareSandbox({ driver })
  const { urlOf, authorized, get, put } = rawFiles({ world, alice, params })
  const contentOf = async (path: string) => (await sh(`cat ${path}`)).stdout
  const head = (path: string, headers?: Record<string, string>) =>
    fetch(urlOf({ path }), { method: 'HEAD', headers: authorized(headers) })

  describe('file writes', () => {
    beforeAll(() => put({ path: 'old' }, Buffer.from('old')))
    const write = (path: string, headers: Record<string, string>) =>
      put({ path }, Buffer.from('new'), headers)

    test.each([
      ['If-None-Match: *', { 'if-none-match': '*' }],
      ['a different sha256', { 'if-match': tagOf('other') }],
      ["a list without the file's sha256", { 'if-match': `${tagOf('a')}, ${tagOf('b')}` }],
      ['a weak tag', { 'if-match': `W/${tagOf('old')}` }],
      ['a tag with another syntax', { 'if-match': '"v1"' }],
    ])('a write whose condition does not hold changes nothing: %s', async (_, headers) => {
      expect(await write('old', headers as Record<string, string>)).toMatchObject({
        status: 412,
        body: { code: 'precondition_failed' },
      })
      expect(await contentOf('old')).toBe('old')
    })

    test.each([
      ['if-none-match', tagOf('old')],
      ['if-match', 'without-quotes'],
      ['if-unmodified-since', 'Tue, 24 Nov 2026 12:00:00 GMT'],
      ['content-range', 'bytes 0-2/10'],
    ])('rejects a write with the header "%s: %s" and names the header', async (name, value) => {
      const { status, body } = await write('old', { [name]: value })
      expect([status, body.errors]).toEqual([400, [expect.objectContaining({ path: name })]])
      expect(await contentOf('old')).toBe('old')
    })

    test('a conditional write replaces the file if its condition holds', async () => {
      expect((await write('first', { 'if-match': '*' })).status).toBe(412)
      expect((await write('first', { 'if-none-match': '*' })).status).toBe(201)
      expect((await write('first', { 'if-match': '*' })).status).toBe(201)
      const list = `${tagOf('other')} , ${tagOf('new')}`
      expect((await write('first', { 'if-match': list })).status).toBe(201)
    })

    test('rejects a compressed upload and names the accepted encoding', async () => {
      const packed = await fetch(urlOf({ path: 'old' }), {
        method: 'PUT',
        headers: authorized({ 'content-encoding': 'gzip' }),
        body: gzipSync('new'),
      })
      expect([packed.status, packed.headers.get('accept-encoding')]).toEqual([415, 'identity'])
      expect(await contentOf('old')).toBe('old')
    })
  })

  describe('file reads', () => {
    const bytes = randomBytes(300)
    beforeAll(() => put({ path: 'read' }, bytes))
    const read = async (headers: Record<string, string>) => {
      const response = await get('read', headers)
      return { response, status: response.status, bytes: Buffer.from(await response.arrayBuffer()) }
    }

    test("a file's ETag is its SHA-256, so a client that already has the file receives 304", async () => {
      expect((await read({})).response.headers.get('etag')).toBe(tagOf(bytes))
      for (const has of [tagOf(bytes), `W/${tagOf(bytes)}`, `"x", ${tagOf(bytes)}`, '*']) {
        const { status, response, bytes: sent } = await read({ 'if-none-match': has })
        expect([status, response.headers.get('etag'), sent.length], has).toEqual([304, tagOf(bytes), 0])
      }
      expect((await read({ 'if-none-match': tagOf('other') })).bytes.equals(bytes)).toBe(true)
      expect((await read({ 'if-match': tagOf(bytes) })).status).toBe(200)
      expect((await read({ 'if-match': tagOf('other') })).status).toBe(412)
    })

    test('HEAD returns the headers of a GET response and ignores Range', async () => {
      const { status, headers } = await head('read', { range: 'bytes=0-9' })
      expect([status, headers.get('content-length'), headers.get('etag')]).toEqual([200, '300', tagOf(bytes)])
      expect((await head('read', { 'if-none-match': tagOf(bytes) })).status).toBe(304)
      expect((await head('nothing')).status).toBe(404)
    })

    test('returns the ETag of a large file only on request', async () => {
      const large = randomBytes(1_100_000)
      await put({ path: 'large' }, large)
      expect((await head('large')).headers.get('etag')).toBe(tagOf(large))
      expect((await get('large', { 'if-none-match': tagOf(large) })).status).toBe(304)
      const part = await get('large', { range: 'bytes=0-9' })
      expect([part.status, part.headers.get('etag')]).toEqual([206, null])
    })

    test.each([
      ['one range', { range: 'bytes=10-19' }, 206],
      ['an unknown unit', { range: 'lines=1-2' }, 200],
      ['several ranges', { range: 'bytes=0-9, 20-29' }, 200],
      ['an If-Range header that matches the file', { range: 'bytes=10-19', 'if-range': tagOf(bytes) }, 206],
      ['an If-Range header that does not match', { range: 'bytes=10-19', 'if-range': tagOf('other') }, 200],
      ['a date as If-Range', { range: 'bytes=10-19', 'if-range': 'Tue, 24 Nov 2026 12:00:00 GMT' }, 200],
    ])('handles a read with %s as RFC 9110 requires', async (_, headers, status) => {
      const answer = await read(headers as Record<string, string>)
      expect(answer.status).toBe(status)
      expect(answer.bytes.equals(status === 206 ? bytes.subarray(10, 20) : bytes)).toBe(true)
    })

    test('the response to an unsatisfiable range states the file size', async () => {
      const { status, response } = await read({ range: 'bytes=300-' })
      expect([status, response.headers.get('content-range')]).toEqual([416, 'bytes */300'])
      expect((await read({ range: 'bytes=a-b' })).status).toBe(400)
    })
  })
})

describe('command output', () => {
  const { world, alice, params } = shareSandbox({})

  test.each([
    ['text/event-stream', 'text/event-stream'],
    ['application/json, text/event-stream', 'text/event-stream'],
    ['application/json, text/event-stream;q=0.1', 'application/json'],
    ['text/event-stream;q=0', 'application/json'],
    ['text/event-stream;q=0.5, */*;q=0.1', 'text/event-stream'],
    ['*/*', 'application/json'],
  ])('the header "Accept: %s" selects a %s response', async (accept, type) => {
    const response = await alice.open('execCommand', {
      params,
      body: { command: 'true' },
      headers: { accept },
    })
    expect(response.headers.get('content-type')).toContain(type)
    await response.text()
  })

  test.each([
    ['one range', 'GET', { range: 'bytes=2-4' }, 206, '3'],
    ['a HEAD request with a range', 'HEAD', { range: 'bytes=2-4' }, 200, '10'],
    ['a HEAD request with an unsatisfiable range', 'HEAD', { range: 'bytes=99-' }, 200, '10'],
    ['an If-Range header with an ETag', 'GET', { range: 'bytes=2-4', 'if-range': '"x"' }, 200, '10'],
  ])('returns raw command output as RFC 9110 requires for %s', async (_, method, headers, status, length) => {
    const { body } = await alice.call('execCommand', { params, body: { command: 'printf 0123456789' } })
    const one = { params: { ...params, exec_id: body.id } }
    const response = await fetch(world.url() + pathOf(endpoints.readExecOutput, one), {
      method,
      headers: { authorization: `Bearer ${alice.key}`, ...headers },
    })
    expect([response.status, response.headers.get('content-length')]).toEqual([status, length])
    const all = '0123456789'
    expect(await response.text()).toBe(method === 'HEAD' ? '' : status === 206 ? all.slice(2, 5) : all)
  })

  test('rejects compressed stdin', async () => {
    const { body } = await alice.call('execCommand', {
      params,
      body: { command: ['cat'], background: true },
    })
    const one = { params: { ...params, exec_id: body.id } }
    const response = await fetch(
      world.url() + pathOf(endpoints.writeExecStdin, { ...one, query: { eof: 'true' } }),
      {
        method: 'POST',
        headers: { authorization: `Bearer ${alice.key}`, 'content-encoding': 'gzip' },
        body: gzipSync('words'),
      },
    )
    expect(response.status).toBe(415)
    await alice.call('stopExec', { ...one, query: { signal: 'KILL' } })
  })

  test('rejects conditional headers on routes that do not support them', async () => {
    await expect(
      alice.call('createFile', {
        params,
        body: { path: 'a', content: 'x' },
        headers: { 'if-none-match': '*' },
      }),
    ).rejects.toMatchObject({ problem: { status: 400, errors: [{ path: 'if-none-match' }] } })
  })
})
