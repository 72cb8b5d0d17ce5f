import type { ChildProcess } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { clientPath, type RunOptions } from './client.ts'
import { openTerminal } from './terminal.ts'
import { makeUsers } from './users.ts'

const world = shareWorld()
const users = makeUsers(world)

const wait = ['session', 'create', '--wait']
/** Calls `act` when the client reports that it is waiting. */
const onceWaiting = (act: (child: ChildProcess) => void): Pick<RunOptions, 'onStart'> => ({
  onStart: (child) => {
    let shown = ''
    child.stderr!.on('data', (chunk) => {
      const before = shown
      shown += chunk
      if (!before.includes('Waiting') && shown.includes('Waiting')) act(child)
    })
  },
})

// Separate users, so that rate limits do not delay other tests.
describe.concurrent('sessions', () => {
  test('`session create --wait` waits until the quota allows a new session', async () => {
    using user = await users.newUser()
    const made = [await user.run(['session', 'create']), await user.run(wait)]
    const ids = made.map(({ stdout }) => stdout.trim())
    const third = await user.run(
      wait,
      onceWaiting(() => void user.run(['session', 'rm', '--yes', ids[0]!])),
    )
    expect(third).toMatchObject({ code: 0, stdout: expect.stringMatching(/^sbx_\w+\n$/) })
    expect(third.stderr).toMatch(/^sandlot: 2 of 2 sandboxes are active.*\nWaiting up to \d+ \w+\.\n$/)

    const quiet = user.run([...wait, '--quiet'])
    await user.run(['session', 'rm', '--yes', ids[1]!])
    expect(await quiet).toMatchObject({ code: 0, stderr: '' })
    expect((await user.run(['session', 'rm', '--all', '--yes'])).code).toBe(0)
  })

  test('`session create --wait` creates no session if interrupted', async () => {
    using user = await users.newUser()
    await world.db.query('update account set hours_limit = 0 where email = ?', [user.email])
    const { code, stderr, json } = await user.run(
      [...wait, '--json'],
      onceWaiting((child) => void child.kill('SIGINT')),
    )
    expect(code).toBe(130)
    expect(stderr).toMatch(/sandbox-hours.*\nWaiting up to \d+ (days|h|min)/s)
    expect(json().error.code).toBe('interrupted')
    expect((await user.run(['session', 'ls', '--all'])).stdout).toBe('')
  })

  test('`session create --wait` waits until the rate limit allows the request', async () => {
    using user = await users.newUser()
    const [account] = await world.db.query<{ id: string }>('select id from account where email = ?', [
      user.email,
    ])
    // An empty bucket with a time one hour ahead stays empty until the first request.
    const aheadUs = (Date.now() + 3_600_000) * 1_000
    const key = `sandlot:bucket:sandbox_lifecycle:${account!.id}`
    await world.redis.set(key, `${Number.MAX_SAFE_INTEGER} ${aheadUs}`)
    const { code, stderr } = await user.run(wait)
    expect(code).toBe(0)
    expect(stderr).toMatch(/Waiting up to 1 s/)
    expect(await user.run(['session', 'rm', '--all', '--yes'])).toMatchObject({ code: 0 })
  })

  test('`session create --wait` fails immediately on an invalid request', async () => {
    using user = await users.newUser()
    expect(await user.run([...wait, '--ttl', '100h'])).toMatchObject({ code: 2, stdout: '' })
  })

  test('`session create --reuse` returns the active session with the same name', async () => {
    using user = await users.newUser()
    const create = (...more: string[]) => user.run(['session', 'create', '--reuse', ...more])
    const first = await create('--name', 'web', '--env', 'A=1')
    const again = await create('--name', 'web', '--env', 'A=1', '--ttl', '60', '--wait')
    expect(first).toMatchObject({ code: 0, stdout: expect.stringMatching(/^sbx_\w+\n$/) })
    expect(again).toMatchObject({ code: 0, stdout: first.stdout })
    const other = await create('--name', 'web', '--env', 'A=2', '--json')
    expect(other.code).toBe(5)
    expect(other.json().error).toMatchObject({
      code: 'sandbox_mismatch',
      sandbox_id: first.stdout.trim(),
      differs: ['env'],
    })
    const refusals: [string[], number, string][] = [
      [[], 2, '--reuse needs a name'],
      [['--name', 'web', '--rm', '--', 'true'], 125, '--reuse cannot be combined with --rm'],
      [['--name', 'web', '--idempotency-key', 'a'], 2, '--reuse cannot be combined with --idempotency-key'],
    ]
    for (const [line, code, words] of refusals)
      expect(await create(...line)).toMatchObject({ code, stderr: expect.stringContaining(words) })
    expect((await user.run(['session', 'ls', '--quiet'])).stdout).toBe(first.stdout)
    await user.run(['session', 'rm', '--yes', 'web'])
  })

  test('`session rm --all` destroys every session after confirmation', async () => {
    using user = await users.newUser()
    expect(await user.run(['session', 'rm', '--all', '--yes'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'No session is active.\n',
    })
    const made = await Promise.all([user.run(['session', 'create']), user.run(['session', 'create'])])
    const ids = made.map(({ stdout }) => stdout.trim())
    expect(await user.run(['session', 'rm', '--all'])).toMatchObject({ code: 2, stdout: '' })
    expect(await user.run(['session', 'rm', '--all', '--yes', ids[0]!])).toMatchObject({ code: 2 })
    const terminal = openTerminal(
      [process.execPath, clientPath, 'session', 'rm', '--all'],
      user.home.environment(),
    )
    await terminal.shows('Destroy 2 sessions: sbx_')
    terminal.type('n\r')
    expect(await terminal.ended).toBe(1)
    expect((await user.run(['session', 'ls', '--quiet'])).stdout.trim().split('\n').sort()).toEqual(
      ids.sort(),
    )

    const { code, stdout, stderr } = await user.run(['session', 'rm', '--all', '--yes'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'Destroyed 2 of 2 sessions.\n' })
    expect(stdout.trim().split('\n').sort()).toEqual(ids)
  })
})
