/** Watching a path: its events, its limits, and everything that ends a watch. */
import { expect, test } from 'vitest'
import type { Account, CallOptions } from '../support/account.ts'
import { describeOnBothDrivers, describeOnEveryImageAtOnce } from '../support/drivers.ts'
import { type EventReader, type ExecEvent, readEvents } from '../support/events.ts'
import { type SharedSandbox, shareSandbox } from '../support/shared.ts'

type Query = NonNullable<CallOptions<'watchFiles'>['query']>

const opensWatches =
  ({ alice, params }: Pick<SharedSandbox, 'alice' | 'params'>) =>
  async (query: Query, account: Pick<Account, 'open'> = alice): Promise<EventReader> => {
    const events = readEvents(await account.open('watchFiles', { params, query }))
    await events.until('start')
    return events
  }

const untilPath = async (events: EventReader, name: string, path: string): Promise<ExecEvent> => {
  for (;;) {
    const event = await events.until(name)
    if (event.data.path === path) return event
  }
}

const shown = (events: readonly ExecEvent[]) => events.map(({ event, data }) => `${event} ${data.path}`)

/** Part of the command line of a watch in the sandbox. Does not match itself. */
const watchScript = 'last=non[e]'

describeOnEveryImageAtOnce('file watches', ({ driver, env }) => {
  const sandbox = shareSandbox({ driver, env })
  const { world, alice, params, countOf } = sandbox
  const watch = opensWatches(sandbox)
  const sh = async (line: string) => {
    const result = await sandbox.sh(line)
    expect(result).toMatchObject({ status: 'exited', exit_code: 0, stderr: '' })
    return result.stdout
  }
  const odd = Buffer.from('w/o\xff', 'latin1').toString('base64')

  test('a watch reports entries that are created, changed or removed, down to the requested depth', async () => {
    await sh(`mkdir -p w/d/e; echo old >w/old; ln -s old w/link; touch "w/$(printf 'o\\377')"`)
    const events = await watch({ path: 'w', depth: 2 })
    const start = { id: '1', event: 'start', data: { path: '/workspace/w', entries: 5 } }
    expect(events.seen).toEqual([start])

    // The rename makes the file appear with its content.
    await sh('mkdir w/d/e/too-deep; touch w/.sandlot-x; echo new >new; mv new w/d/new')
    const { data } = await untilPath(events, 'created', 'w/d/new')
    const { body: stat } = await alice.call('statFile', { params, query: { path: 'w/d/new' } })
    expect(data).toEqual({ ...stat, path: 'w/d/new' })
    await sh('echo more >>w/d/new')
    expect((await untilPath(events, 'changed', 'w/d/new')).data).toMatchObject({ type: 'file', size: 9 })
    await sh('chmod 600 w/d/new')
    expect((await untilPath(events, 'changed', 'w/d/new')).data).toMatchObject({ mode: '600' })
    await sh('chmod 700 w/d')
    expect((await untilPath(events, 'changed', 'w/d')).data).toMatchObject({ type: 'directory', mode: '700' })
    await sh('ln -s new link; mv link w/link')
    expect((await untilPath(events, 'changed', 'w/link')).data).toMatchObject({ target: 'new' })
    await sh(`rm "w/$(printf 'o\\377')"`)
    expect((await events.until('removed')).data).toEqual({ path: 'w/o\ufffd', path_base64: odd })
    await events.leave()
    expect(shown(events.seen)).toEqual([
      'start /workspace/w',
      'created w/d/new',
      'changed w/d/new',
      'changed w/d/new',
      'changed w/d',
      'changed w/link',
      'removed w/o\ufffd',
    ])
  })

  test('a watch reports a rename as a removal and a creation', async () => {
    await sh('mkdir renamed; echo x >renamed/old')
    const events = await watch({ path: 'renamed' })
    await sh('mv renamed/old renamed/new')
    const both = [await events[Symbol.asyncIterator]().next(), await events[Symbol.asyncIterator]().next()]
    expect(shown(both.map(({ value }) => value)).sort()).toEqual([
      'created renamed/new',
      'removed renamed/old',
    ])
    await events.leave()
  })

  test('a watch of a file or directory ends when the path is removed', async () => {
    await sh('mkdir dir; touch dir/a; echo 1 >file')
    const gone = { event: 'end', data: { code: 'file_not_found', detail: 'No file exists at this path.' } }
    const file = await watch({ path: 'file' })
    await sh('echo 2 >>file')
    expect((await file.until('changed')).data).toMatchObject({
      path: '/workspace/file',
      name: 'file',
      size: 4,
    })
    await sh('rm file')
    expect(shown((await file.rest()).slice(2, -1))).toEqual(['removed /workspace/file'])
    expect(file.seen.at(-1)).toMatchObject(gone)
    const dir = await watch({ path: 'dir' })
    await sh('rm -r dir')
    expect(shown((await dir.rest()).slice(1, -1))).toEqual(['removed dir/a'])
    expect(dir.seen.at(-1)).toMatchObject(gone)
  })

  test('rejects a watch of a path that cannot be listed', async () => {
    await sh('mkdir shut; chmod 000 shut')
    const refuses = (query: Query, code: string) =>
      expect(alice.open('watchFiles', { params, query })).rejects.toMatchObject({ code })
    await refuses({ path: 'none' }, 'file_not_found')
    await refuses({ path: 'shut' }, 'permission_denied')
    await refuses({ depth: 33 }, 'invalid_request')
    await refuses({ path: 'a', path_base64: odd }, 'invalid_request')
    await sh('chmod 700 shut')
  })

  test('a watch is limited to 10,000 entries', async () => {
    await sh('mkdir many; cd many; seq 10001 | xargs touch')
    await expect(alice.open('watchFiles', { params, query: { path: 'many' } })).rejects.toMatchObject({
      code: 'invalid_request',
      problem: { detail: expect.stringMatching(/10000 entries.*depth/) },
    })
    await sh('rm many/1')
    const events = await watch({ path: 'many' })
    expect(events.seen[0]!.data).toMatchObject({ entries: 10_000 })
    await sh('rm many/2; touch many/new')
    await events.until('created')
    await sh('touch many/1 many/2')
    const end = (await events.rest()).at(-1)!
    expect(end).toMatchObject({ event: 'end', data: { code: 'invalid_request' } })
    expect(end.data.detail).toMatch(/10000 entries/)
    await sh('rm -r many')
  })

  test('a sandbox can have eight watches, which do not block other operations and leave no processes behind', async () => {
    await sh('mkdir shared')
    const watches = await Promise.all(Array.from({ length: 8 }, () => watch({ path: 'shared' })))
    const refusal = {
      status: 429,
      code: 'rate_limited',
      problem: { detail: expect.stringMatching(/8 watches/) },
    }
    await expect(watch({ path: 'shared' })).rejects.toMatchObject(refusal)
    await alice.call('createFile', { params, body: { path: 'shared/new', content: 'x' } })
    const move = { path: 'shared/new', to: 'shared/moved' }
    await alice.call('moveFile', { params, body: move })
    await Promise.all(watches.map((events) => untilPath(events, 'created', 'shared/moved')))
    await watches.pop()!.leave()
    const ninth = await world.eventually(() => watch({ path: 'shared' }).catch(() => undefined), 20_000)
    await Promise.all([...watches, ninth].map((events) => events.leave()))
    await world.eventually(async () => (await countOf(watchScript)) === 0, 20_000)
  })
})

describeOnBothDrivers('the end of a file watch', (driver) => {
  const env = { DRAIN_SECONDS: '600' }
  const sandbox = shareSandbox({ driver, env })
  const { world, alice, params, countOf } = sandbox
  const watch = opensWatches(sandbox)
  const interrupted = { event: 'end', data: { code: 'unavailable', detail: expect.stringMatching(/again/) } }

  test('a watch ends when its API key is revoked', async () => {
    const other = await alice.withNewKey()
    const events = await watch({}, other)
    await alice.call('revokeApiKey', { params: { key_id: other.keyId } })
    await expect(events.rest()).rejects.toThrow()
    await world.eventually(async () => (await countOf(watchScript)) === 0, 20_000)
  })

  test('a watch ends when the sandbox is reset, and can then be opened again', async () => {
    const events = await watch({})
    await alice.call('resetSandbox', { params })
    expect((await events.rest()).at(-1)).toMatchObject(interrupted)
    await (await watch({})).leave()
  })

  test('a watch ends when its sandbox is destroyed', async () => {
    const { body: other } = await alice.call('createSandbox')
    const events = await opensWatches({ alice, params: { id: other.id } })({})
    await alice.call('destroySandbox', { params: { id: other.id } })
    const data = { code: 'sandbox_destroyed', detail: expect.stringMatching(/requested/) }
    expect((await events.rest()).at(-1)).toMatchObject({ event: 'end', data })
  })

  test('a watch ends when its worker stops, and does not delay the stop', async () => {
    const [first] = world.workers
    const events = await watch({})
    await world.startWorker(env)
    const stopped = first!.stop()
    expect((await events.rest()).at(-1)).toMatchObject(interrupted)
    await stopped
    await (await watch({})).leave()
  })

  test('a watch ends when its worker is killed, and leaves no process in the sandbox', async () => {
    const events = await watch({})
    await Promise.all(world.workers.map((worker) => worker.kill()))
    expect((await events.rest()).at(-1)).toMatchObject({ id: '2', ...interrupted })
    await world.startWorker(env)
    await world.eventually(async () => (await countOf(watchScript)) === 0, 20_000)
  })
})
