import { hash, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { expect, test } from 'vitest'
import { ProblemDetails } from '../../shared/contract/endpoint.ts'
import { describeOnEveryImage } from '../support/drivers.ts'
import { isSoak } from '../support/eventually.ts'
import { memoryOf, peakMemory } from '../support/memory.ts'
import { rawFiles } from '../support/raw-files.ts'
import { shareSandbox } from '../support/shared.ts'

const kibibyte = 1024
const megabyte = 1024 * kibibyte
/**
 * Sizes around the limits of pipes, Kubernetes frames (64 KiB), local frames, hashing (1 MiB) and the output
 * rate.
 */
const sizes = [64 * kibibyte, megabyte].flatMap((end) => [end - 1, end, end + 1]).concat(9 * megabyte + 1)

describeOnEveryImage('raw files', ({ driver, env }) => {
  const { world, alice, params, ...inside } = shareSandbox({ driver, env })

  const { urlOf, authorized, get, put, passBothWays } = rawFiles({ world, alice, params })
  const sh = async (line: string) => (await inside.sh(line)).stdout
  const sha256 = (bytes: string | Buffer) => hash('sha256', bytes)

  test('stores raw bytes and returns all or a range of them unchanged', async () => {
    const bytes = randomBytes(300_000)
    expect(await put({ path: 'a/b.bin' }, bytes)).toEqual({
      status: 201,
      body: { path: '/workspace/a/b.bin', size: bytes.length, sha256: sha256(bytes) },
    })
    const whole = await get('a/b.bin')
    expect(whole.status).toBe(200)
    expect(Number(whole.headers.get('content-length'))).toBe(bytes.length)
    expect(Buffer.from(await whole.arrayBuffer()).equals(bytes)).toBe(true)
    const ranges = [
      ['bytes=0-0', 0, 1],
      ['bytes=1000-200999', 1000, 201_000],
      ['bytes=299990-', 299_990, 300_000],
      ['bytes=-5', 299_995, 300_000],
    ] as const
    for (const [range, from, to] of ranges) {
      const part = await get('a/b.bin', { range })
      expect(part.status).toBe(206)
      expect(part.headers.get('content-range')).toBe(`bytes ${from}-${to - 1}/300000`)
      expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(from, to))).toBe(true)
    }
    const beyond = await get('a/b.bin', { range: 'bytes=300000-' })
    expect(ProblemDetails.parse(await beyond.json())).toMatchObject({
      status: 416,
      code: 'range_not_satisfiable',
    })
  })

  test('stores and returns an empty file', async () => {
    expect(await put({ path: 'empty' }, Buffer.alloc(0))).toMatchObject({ status: 201, body: { size: 0 } })
    const response = await get('empty')
    expect([response.status, await response.text()]).toEqual([200, ''])
  })

  test('returns a specific error for each kind of path that cannot be read or written', async () => {
    await sh('mkdir -p folder')
    expect((await get('nowhere')).status).toBe(404)
    expect((await get('folder')).status).toBe(409)
    // Unread upload data must not block the connection.
    for (let time = 0; time < 5; time++) {
      const refused = await put({ path: 'folder' }, randomBytes(5 * megabyte))
      expect(refused).toMatchObject({ status: 409, body: { code: 'is_directory' } })
      const other = await put({ path: '/usr/x' }, Buffer.from('x'))
      expect(other).toMatchObject({ status: 403, body: { code: 'read_only' } })
    }
  })

  test('an aborted upload leaves the existing file unchanged', async () => {
    await put({ path: 'kept' }, Buffer.from('old'))
    await new Promise<void>((resolve) => {
      const upload = request(urlOf({ path: 'kept' }), { method: 'PUT', headers: authorized() })
      upload.on('error', () => {})
      upload.on('close', () => resolve())
      upload.write(randomBytes(megabyte), () => setTimeout(() => upload.destroy(), 100))
    })
    await world.eventually(async () => (await sh('ls -A | grep -c sandlot')) === '0\n', 10_000)
    expect(await sh('cat kept')).toBe('old')
  })

  test.each(sizes)('stores and returns a file of %i bytes', async (size) => {
    await passBothWays(size)
    await sh('rm big')
  })

  test.runIf(isSoak)("transferring more than 100 MB does not increase any process's memory use", async () => {
    // V8 collects garbage late, so growth only has to stay far below the file size.
    await passBothWays(64 * megabyte)
    const processes = [...world.apis, ...world.workers]
    const before = processes.map(memoryOf)
    const peaks = await peakMemory(processes, () => passBothWays(112 * megabyte))
    for (const [index, most] of peaks.entries()) expect(most - before[index]!).toBeLessThan(64 * megabyte)
    await sh('rm big')
  })
})
