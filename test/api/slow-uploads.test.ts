/** Uploads that take longer than Node's default `requestTimeout`. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { shareSandbox } from '../support/shared.ts'

const preload = new URL('../support/short-requests.mjs', import.meta.url)
const { world, alice, params, sh, waitForExit } = shareSandbox({
  env: { NODE_OPTIONS: `--import=${preload}` },
})

const parts = 10
async function* slowly() {
  for (let part = 0; part < parts; part++) {
    yield Buffer.from(`${part}\n`)
    await sleep(500)
  }
}
const bytes = () => ReadableStream.from(slowly())
const whole = Array.from({ length: parts }, (_, part) => `${part}\n`).join('')

describe.concurrent('slow uploads', () => {
  test('a slow file upload has no time limit', async () => {
    const query = { path: 'slow' }
    const { body } = await alice.call('writeRawFile', { params, query, bytes: bytes() })
    expect(body.size).toBe(whole.length)
    expect((await alice.call('viewFile', { params, query })).body.content).toBe(whole)
  })

  test('a slow upload fails with 503 if its process in the sandbox is killed', async () => {
    const upload = alice
      .call('writeRawFile', { params, query: { path: 'ended' }, bytes: bytes() })
      .catch((problem) => problem)
    const kill = `n=1; for p in /proc/[0-9]*; do
      grep -qs '/[e]nded' $p/cmdline && kill -9 \${p##*/} && n=0; done; exit $n`
    await world.eventually(async () => (await sh(kill)).exit_code === 0, 10_000)
    expect(await upload).toMatchObject({ status: 503, code: 'unavailable' })
  })

  test('stdin that arrives slowly reaches the command in full, without a time limit', async () => {
    const started = await alice.call('execCommand', { params, body: { command: 'cat', background: true } })
    const ofExec = { ...params, exec_id: started.body.id }
    const query = { eof: 'true' as const }
    const { body } = await alice.call('writeExecStdin', { params: ofExec, query, bytes: bytes() })
    expect(body).toEqual({ offset: whole.length, eof: true })
    expect(await waitForExit(started.body.id)).toMatchObject({ exit_code: 0, stdout: whole })
  })
})
