import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import { limits } from '../../shared/contract/limits.ts'
import { routes } from '../../shared/contract/routes.ts'
import { pathOf } from '../support/account.ts'
import { describeOnBothDrivers } from '../support/drivers.ts'
import { bytesOf, type EventReader, readEvents } from '../support/events.ts'
import { expectDurationBelow, isSoak } from '../support/eventually.ts'
import { send } from '../support/http.ts'
import { shareSandbox } from '../support/shared.ts'

describeOnBothDrivers("a command's events", (driver) => {
  const { world, alice, params, sh, countOf, waitForExit } = shareSandbox({ driver })

  const open = async (body: ExecRequest, more: object = {}): Promise<EventReader> => {
    const headers = { accept: 'text/event-stream' }
    return readEvents(await alice.open('execCommand', { params, headers, body, ...more }))
  }
  const comeBack = async (
    exec_id: string,
    lastEventId?: string,
    sandbox = params.id,
    api = 0,
  ): Promise<EventReader> => {
    const headers: Record<string, string> = lastEventId ? { 'last-event-id': lastEventId } : {}
    return readEvents(await alice.open('streamExec', { params: { id: sandbox, exec_id }, headers, api }))
  }

  test("an event stream starts with the command's id and ends with the result", async () => {
    const all = await (await open({ command: 'echo one; echo two >&2; exit 3' })).rest()
    expect(all[0]).toMatchObject({ event: 'start', data: { id: expect.stringMatching(/^exec_/) } })
    expect(bytesOf(all, 'stdout').toString()).toBe('one\n')
    expect(bytesOf(all, 'stderr').toString()).toBe('two\n')
    const exit = all.at(-1)!
    expect(exit).toMatchObject({
      event: 'exit',
      data: { id: all[0]!.data.id, status: 'exited', exit_code: 3, signal: null, stdout_bytes: 4 },
    })
    expect(exit.data).not.toHaveProperty('stdout')
    expect(exit.data).not.toHaveProperty('stderr')
  })

  test('events escape characters that some parsers treat as line breaks', async () => {
    const ends = 'a\u0085b\u2028c\u2029d\n'
    const body = { command: 'printf %s "$T"', env: { T: ends } }
    const response = await alice.open('execCommand', {
      params,
      headers: { accept: 'text/event-stream' },
      body,
    })
    const text = await response.text()
    expect(text).not.toMatch(/[\u0085\u2028\u2029]/)
    const data = text.split('\n').filter((line) => line.startsWith('data: '))
    const printed = data.map((line) => JSON.parse(line.slice(6)).text ?? '').join('')
    expect(printed).toBe(ends)
  })

  test('events are sent while the command is running, and their ids contain the number of bytes sent so far', async () => {
    await sh('mkfifo between')
    const events = await open({ command: 'printf 12345; cat between; printf abc >&2' })
    expect((await events.until('stdout')).data).toEqual({ text: '12345' })
    await sh(': > between')
    const all = await events.rest()
    expect(all.map((event) => event.id)).toEqual(['0-0', '5-0', '5-3', '5-3'])
  })

  test('events never split a character and encode non-UTF-8 output as base64', async () => {
    // Writes single bytes, so that any wrong boundary would split a character.
    const text = 'ä€🎈'
    const slow =
      'for b in $(printf %s "$T" | od -An -v -to1 | tr -s " \\n" " "); do printf "\\\\$b"; sleep 0.01; done'
    const events = await (await open({ command: slow, env: { T: text } })).rest()
    expect(bytesOf(events, 'stdout').toString()).toBe(text)
    expect(events.filter(({ event }) => event === 'stdout').every(({ data }) => 'text' in data)).toBe(true)

    const binary = await (await open({ command: "printf '\\377\\376\\0a'" })).rest()
    expect(binary.filter(({ event }) => event === 'stdout')).toMatchObject([
      { data: { base64: Buffer.from([255, 254, 0, 97]).toString('base64') } },
    ])
  })

  test('many megabytes of output on both streams arrive complete and in order', async () => {
    const events = await (await open({ command: 'seq 1 400000; seq 1 200000 >&2' })).rest()
    const numbers = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1}\n`).join('')
    expect(bytesOf(events, 'stdout').equals(Buffer.from(numbers(400_000)))).toBe(true)
    expect(bytesOf(events, 'stderr').equals(Buffer.from(numbers(200_000)))).toBe(true)
  })

  test('a reader can resume after any event and receives exactly the remaining output', async () => {
    const command =
      'seq 1 20000; seq 1 20000 >&2; printf "\\377é"; for i in 1 2 3 4 5 6; do sleep 0.03; echo "ü $i"; done'
    const first = await (await open({ command })).rest()
    const execId = first[0]!.data.id
    await fc.assert(
      fc.asyncProperty(fc.nat(first.length - 2), async (at) => {
        const rest = await (await comeBack(execId, first[at]!.id)).rest()
        for (const stream of ['stdout', 'stderr'] as const) {
          const before = bytesOf(first.slice(0, at + 1), stream)
          const all = Buffer.concat([before, bytesOf(rest, stream)])
          expect(all.equals(bytesOf(first, stream))).toBe(true)
        }
        expect(rest.at(-1)).toEqual(first.at(-1))
        expect(rest.filter(({ event }) => event === 'start')).toEqual([])
      }),
      { numRuns: 20 },
    )
    const again = await (await comeBack(execId)).rest()
    expect(again[0]!.event).toBe('start')
    expect(bytesOf(again, 'stdout').equals(bytesOf(first, 'stdout'))).toBe(true)
  })

  test.concurrent('a command keeps running if its reader resumes within the grace period', async () => {
    const events = await open({
      command: 'for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.2; done',
      grace_ms: 20_000,
    })
    const last = await events.until('stdout')
    await events.leave()
    const rest = await (await comeBack(events.seen[0]!.data.id, last.id)).rest()
    expect(bytesOf([...events.seen, ...rest], 'stdout').toString()).toBe('1\n2\n3\n4\n5\n6\n7\n8\n')
    expect(rest.at(-1)!.data).toMatchObject({ status: 'exited', exit_code: 0 })
  })

  test.concurrent("a HEAD request for a command's event stream does not block the command", async () => {
    const command = ['sh', '-c', 'read go; head -c 12000000 /dev/zero']
    const { body } = await alice.call('execCommand', { params, body: { command, background: true } })
    const one = { ...params, exec_id: body.id }
    const head = await send(`${world.url()}${pathOf(routes.streamExec, { params: one })}`, {
      method: 'HEAD',
      headers: { authorization: `Bearer ${alice.key}` },
    })
    expect([head.status, head.headers['content-type'], head.text]).toEqual([
      200,
      'text/event-stream; charset=utf-8',
      '',
    ])
    await alice.call('writeExecStdin', { params: one, bytes: Buffer.from('go\n') })
    await waitForExit(body.id)
  })

  test.concurrent("kills a command's process group if its client disconnects and does not reconnect", async () => {
    const events = await open({ command: 'sleep 881 & echo up; sleep 882' })
    await events.until('stdout')
    await world.eventually(async () => (await countOf('sleep 88[12]')) >= 2, 5_000)
    await events.leave()
    await world.eventually(async () => (await countOf('sleep 88[12]')) === 0, 5_000)
    const exec = { ...params, exec_id: events.seen[0]!.data.id }
    expect((await alice.call('getExec', { params: exec })).body).toMatchObject({
      status: 'killed',
      exit_code: null,
    })
  })

  test.concurrent('when an API key is revoked, its event streams close, and their clients count as disconnected', async () => {
    const other = await alice.withNewKey()
    const headers = { accept: 'text/event-stream' }
    const body = { command: 'echo up; sleep 883', grace_ms: 0 }
    const events = readEvents(await other.open('execCommand', { params, headers, body }))
    await events.until('stdout')
    await alice.call('revokeApiKey', { params: { key_id: other.keyId } })
    await expect(events.rest()).rejects.toThrow()
    await world.eventually(async () => (await countOf('sleep 88[3]')) === 0, 5_000)
  })

  test.concurrent('a command whose client disconnects keeps running for the requested grace period', async () => {
    const events = await open({ command: 'echo up; sleep 4; touch survived', grace_ms: 60_000 })
    await events.until('stdout')
    await events.leave()
    await world.eventually(async () => (await sh('test -e survived')).exit_code === 0, 10_000)
  })

  test('a reader that resumes too late receives a gap event with the number of missing bytes', async () => {
    const { body } = await alice.call('execCommand', {
      params,
      body: { command: 'head -c 20000000 /dev/zero | tr "\\0" x; echo end', background: true },
    })
    await waitForExit(body.id)
    const events = await (await comeBack(body.id, '7-0')).rest()
    expect(events[0]!.event).toBe('gap')
    const kept = bytesOf(events, 'stdout')
    expect(events[0]!.data).toEqual({ stdout_bytes: 20_000_004 - 7 - kept.length, stderr_bytes: 0 })
    expect(kept.length).toBeLessThanOrEqual(limits.keptBytes)
    expect(kept.subarray(-5).toString()).toBe('xend\n')
    expect(events[0]!.id).toBe(`${20_000_004 - kept.length}-0`)
  })

  test('when a sandbox is destroyed, its event streams immediately report `killed` and end', async () => {
    const other = (await alice.call('createSandbox')).body.id
    const streams = await Promise.all(
      ['a', 'b'].map((word) => open({ command: `echo ${word}; sleep 60` }, { params: { id: other } })),
    )
    await Promise.all(streams.map((events) => events.until('stdout')))
    await alice.call('destroySandbox', { params: { id: other } })
    const startedAt = performance.now()
    for (const events of streams) {
      const exit = (await events.rest()).at(-1)!
      expect(exit).toMatchObject({
        event: 'exit',
        data: { status: 'killed', reason: 'requested', exit_code: null },
      })
    }
    expectDurationBelow(performance.now() - startedAt, 3_000)
    const exec = { id: other, exec_id: streams[0]!.seen[0]!.data.id }
    await expect(comeBack(exec.exec_id, undefined, other)).rejects.toMatchObject({ status: 410 })
    expect((await alice.call('getExec', { params: exec })).body).toMatchObject({
      status: 'killed',
      reason: 'requested',
    })
  })

  // Independent of the driver, so only the soak uses each driver.
  const onOne = test.runIf(isSoak || driver === 'local')
  onOne('a stream whose worker is killed ends with the status lost', async () => {
    const events = await open({ command: 'echo up; sleep 60' })
    await events.until('stdout')
    await Promise.all(world.workers.map((worker) => worker.kill()))
    const exit = (await events.rest()).at(-1)!
    expect(exit).toMatchObject({ event: 'exit', data: { status: 'lost', exit_code: null } })
    expect(exit.data.reason).toMatch(/\S/)
  })
})
