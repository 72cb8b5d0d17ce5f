/** Sandboxes through the API: create, get, list, destroy. */
import { encodeTime } from 'ulid'
import { describe, expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import { newSandboxId } from '../../shared/data/ids.ts'
import type { Account, CallOptions } from '../support/account.ts'
import { startWorld } from '../support/index.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({
  env: { QUOTA_CONCURRENT_SANDBOXES: '100', SANDBOX_IMAGES: 'other:1', SANDBOX_MAX_SECONDS: '1800' },
})

describe('create', () => {
  test('a create returns 201 with a running sandbox and its location', async () => {
    const alice = await world.account()
    const { status, body, headers } = await alice.call('createSandbox', {
      body: { name: ' build ', metadata: { branch: 'main' }, image: 'other:1', ttl_seconds: 60 },
    })
    expect(status).toBe(201)
    expect(headers.get('location')).toBe(`/v1/sandboxes/${body.id}`)
    expect(body).toMatchObject({
      state: 'active',
      name: 'build',
      image: 'other:1',
      metadata: { branch: 'main' },
      destroyed_at: null,
      destroy_reason: null,
      destroy_detail: null,
      timings: { ready_ms: expect.any(Number) },
    })
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBe(60_000)
    expect(Date.parse(body.ready_at!)).toBeGreaterThanOrEqual(Date.parse(body.created_at))
    const { body: result } = await alice.call('execCommand', {
      params: { id: body.id },
      body: { command: ['echo', 'hello'] },
    })
    expect(result).toMatchObject({ status: 'exited', exit_code: 0, stdout: 'hello\n' })
  })

  test('a create without a body uses the defaults', async () => {
    const alice = await world.account()
    const { body } = await alice.call('createSandbox')
    expect(body).toMatchObject({ name: null, image: 'debian:bookworm-slim', metadata: {} })
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBe(1_800_000)
  })

  test('a create with Prefer: respond-async returns 202 immediately', async () => {
    const alice = await world.account()
    const { status, body, headers } = await alice.call('createSandbox', {
      headers: { prefer: 'wait=5, Respond-Async; x=1' },
    })
    expect(status).toBe(202)
    expect(headers.get('preference-applied')).toBe('respond-async')
    expect(body).toMatchObject({ state: 'active', ready_at: null, billed_seconds: 0 })
    await world.eventually(async () => (await get(alice, body.id)).ready_at, 10_000)
  })

  test("no response contains a sandbox's environment, and the database stores it encrypted", async () => {
    const alice = await world.account()
    const value = 'a value of "many" \'kinds\'\n$HOME'
    const { body } = await alice.call('createSandbox', { body: { env: { TOKEN: value } } })
    expect(JSON.stringify(body)).not.toContain('a value of')
    const { body: result } = await alice.call('execCommand', {
      params: { id: body.id },
      body: { command: 'printf %s "$TOKEN"' },
    })
    expect(result.stdout).toBe(value)
    const [row] = await world.db.query('select sandbox::text as text, sealed_env from sandbox where id = ?', [
      body.id,
    ])
    expect(row!.text).not.toContain('TOKEN')
    expect((row!.sealed_env as Buffer).toString('latin1')).not.toContain('TOKEN')
  })

  test.each([
    [{ ttl_seconds: 1801 }, 'ttl_seconds'],
    [{ ttl_seconds: 0 }, 'ttl_seconds'],
    [{ ttl_seconds: 1.5 }, 'ttl_seconds'],
    [{ image: 'evil:latest' }, 'image'],
    [{ name: '' }, 'name'],
    [{ name: 'a\0b' }, 'name'],
    [{ name: '\ud800' }, 'name'],
    [{ metadata: { a: 1 } }, 'metadata.a'],
    [{ metadata: { a: '\udfff' } }, 'metadata.a'],
    [
      { metadata: Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`a${n}`, '€'.repeat(512)])) },
      'metadata',
    ],
    [{ env: { '1A': 'x' } }, 'env.1A'],
    [{ env: { A: 'x\0' } }, 'env.A'],
    [{ cpu: 8 }, 'cpu'],
    [[], ''],
  ])('rejects the create request %j and names the invalid field', async (body, path) => {
    const alice = await world.account()
    await expect(alice.call('createSandbox', { body: body as never })).rejects.toMatchObject({
      status: 400,
      code: 'invalid_request',
      problem: { errors: [{ path, message: expect.any(String) }] },
    })
    expect((await alice.call('listSandboxes')).body.data).toEqual([])
  })

  test.each([
    ['one variable', { A: 'x'.repeat(limits.argumentBytes - 1) }],
    ['several together', Object.fromEntries(Array.from('abcdefgh', (name) => [name, 'x'.repeat(124_000)]))],
  ])('rejects an environment too large for any command to start: %s', async (_, env) => {
    const alice = await world.account()
    await expect(alice.call('createSandbox', { body: { env } })).rejects.toMatchObject({
      code: 'invalid_request',
      problem: { errors: [{ path: 'env', message: expect.stringContaining('must have at most') }] },
    })
  })

  test('reports that a sandbox was destroyed while it was starting', async () => {
    await using slow = await startWorld()
    const alice = await slow.account()
    // The worker is frozen, but its liveness timeout has not elapsed.
    slow.workers[0]!.signal('SIGSTOP')
    const creating = alice.call('createSandbox')
    creating.catch(() => {})
    const started = await slow.eventually(async () => (await alice.call('listSandboxes')).body.data[0], 5_000)
    await alice.call('destroySandbox', { params: { id: started.id } })
    await expect(creating).rejects.toMatchObject({
      status: 410,
      code: 'sandbox_destroyed',
      problem: { sandbox_id: started.id, destroy_reason: 'requested' },
    })
    slow.workers[0]!.signal('SIGCONT')
  })
})

describe('destroy', () => {
  test('destroying a sandbox again returns the same response and the same billed time', async () => {
    const alice = await world.account()
    const { body } = await alice.call('createSandbox')
    const params = { id: body.id }
    const first = await alice.call('destroySandbox', { params })
    expect(first).toMatchObject({
      status: 200,
      body: { id: body.id, state: 'destroyed', destroy_reason: 'requested', destroy_detail: null },
    })
    const { ready_at, destroyed_at, billed_seconds } = first.body
    expect(billed_seconds).toBe((Date.parse(destroyed_at!) - Date.parse(ready_at!)) / 1000)
    for (const again of [
      await alice.call('destroySandbox', { params }),
      await alice.call('getSandbox', { params }),
    ]) {
      expect(again.body).toEqual(first.body)
    }
    expect((await alice.call('getAccount')).body.concurrent.active).toBe(0)
  })
})

describe('list', () => {
  test('lists sandboxes in pages, newest first, and can filter them by state', async () => {
    const alice = await world.account()
    const ids: string[] = []
    for (let n = 0; n < 7; n++) ids.unshift(await insert(alice, n % 2 === 0))
    for (const limit of [1, 2, 3, 7, 100]) expect(await listAll(alice, { limit })).toEqual(ids)
    expect(await listAll(alice, { limit: 2, state: 'active' })).toEqual(ids.filter((_, n) => n % 2 === 0))
    expect(await listAll(alice, { limit: 2, state: 'destroyed' })).toEqual(ids.filter((_, n) => n % 2 === 1))
  })

  test('sandboxes created between two requests do not shift the next page of a list', async () => {
    const alice = await world.account()
    const ids = [await insert(alice), await insert(alice), await insert(alice)].reverse()
    const { body } = await alice.call('listSandboxes', { query: { limit: 2 } })
    await insert(alice)
    const next = await alice.call('listSandboxes', { query: { limit: 2, cursor: body.next_cursor! } })
    expect(next.body.data.map(({ id }) => id)).toEqual([ids[2]])
    expect(next.body.next_cursor).toBeNull()
  })

  test('a list can be filtered by name, image, metadata and time, and paged in either order', async () => {
    const [alice, bob] = [await world.account(), await world.account()]
    const hour = 60 * 60 * 1000
    // Recent, because the reconciler deletes old metadata.
    const times = [72, 48, 24].map((hours) => new Date(Date.now() - hours * hour).toISOString())
    const beforeSecond = new Date(Date.parse(times[1]!) + hour).toISOString().replace('Z', '+02:00')
    const made: { id: string; name: string; image: string; team: string; at: string; isActive: boolean }[] =
      []
    for (let n = 0; n < 12; n++) {
      const it = {
        name: n % 2 === 0 ? 'web' : 'job=1',
        image: n % 3 === 0 ? 'rare' : 'usual',
        team: n % 4 < 2 ? 'a.b' : 'c',
        at: times[Math.floor(n / 4)]!,
        isActive: n % 5 === 0,
      }
      made.push({ ...it, id: await insert(alice, it.isActive, it) })
      await insert(bob, it.isActive, it)
    }
    made.sort((one, other) => (one.id < other.id ? -1 : 1))
    const filters: [SandboxQuery, (it: (typeof made)[number]) => boolean][] = [
      [{}, () => true],
      [{ name: 'web' }, ({ name }) => name === 'web'],
      [{ name: ' job=1 ' }, ({ name }) => name === 'job=1'],
      [{ name: 'none' }, () => false],
      [{ image: 'rare' }, ({ image }) => image === 'rare'],
      [{ metadata: { 'team.of': 'a.b' } }, ({ team }) => team === 'a.b'],
      [{ metadata: { 'team.of': 'a.b', image: 'rare' } }, (it) => it.team === 'a.b' && it.image === 'rare'],
      [{ metadata: { 'team.of': 'a' } }, () => false],
      [{ created_after: times[0]! }, ({ at }) => at > times[0]!],
      [{ created_after: beforeSecond }, ({ at }) => at >= times[1]!],
      [
        { name: 'web', image: 'usual', metadata: { 'team.of': 'c' }, created_after: times[0]! },
        (it) => it.name === 'web' && it.image === 'usual' && it.team === 'c' && it.at > times[0]!,
      ],
    ]
    const states = {
      all: () => true,
      active: (active: boolean) => active,
      destroyed: (active: boolean) => !active,
    }
    for (const [filter, isMatch] of filters) {
      for (const [state, isListed] of Object.entries(states)) {
        const ids = made.filter((it) => isMatch(it) && isListed(it.isActive)).map(({ id }) => id)
        for (const order of ['asc', 'desc'] as const) {
          const query = { ...filter, state: state as keyof typeof states, order, limit: 2 }
          const listed = await listAll(alice, query)
          expect(listed, JSON.stringify(query)).toEqual(order === 'asc' ? ids : ids.toReversed())
        }
      }
    }
  })

  test('a metadata filter matches the current metadata after an update', async () => {
    const alice = await world.account()
    const id = await insert(alice, false, { team: 'a' })
    const listTeam = (team: string) => listAll(alice, { limit: 1, metadata: { 'team.of': team } })
    await world.db.query('update sandbox set metadata = ? where id = ?', [{ 'team.of': 'b' }, id])
    expect([await listTeam('a'), await listTeam('b')]).toEqual([[], [id]])
    await world.db.query("update sandbox set metadata = '{}' where id = ?", [id])
    expect(await world.db.query('select from sandbox_label where sandbox_id = ?', [id])).toEqual([])
  })

  test.each([
    ['limit=1&limit=2', 'limit'],
    ['cursor=nonsense', 'cursor'],
    ['colour=red', 'colour'],
    ['colour.a=red', 'colour'],
    ['name=a%00', 'name'],
    ['metadata=a', 'metadata'],
    ['metadata=a&metadata.a=b', 'metadata'],
    ['metadata.a=b&metadata.a=c', 'metadata.a'],
    ['metadata.=b', 'metadata.'],
    ['metadata.__proto__=b', 'metadata.__proto__'],
    ['created_after=1999-01-01T00:00:00Z', 'created_after'],
    ['order=up', 'order'],
  ])('rejects the list query ?%s', async (query, path) => {
    const alice = await world.account()
    const response = await fetch(`${world.url()}/v1/sandboxes?${query}`, {
      headers: { authorization: `Bearer ${alice.key}` },
    })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_request', errors: [{ path }] })
  })

  async function listAll(account: Account, query: SandboxQuery & { limit: number }) {
    const ids: string[] = []
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await account.call('listSandboxes', { query: cursor ? { ...query, cursor } : query })
      expect(page.body.data.length).toBeLessThanOrEqual(query.limit)
      ids.push(...page.body.data.map(({ id }) => id))
      cursor = page.body.next_cursor
    }
    return ids
  }
})

async function get(account: Account, id: string) {
  return (await account.call('getSandbox', { params: { id } })).body
}

type SandboxQuery = NonNullable<CallOptions<'listSandboxes'>['query']>

interface Inserted {
  name?: string
  image?: string
  team?: string
  /** The time of creation, which the id also contains. */
  at?: string
}

/** Inserts a row without a pod, which workers ignore. */
async function insert(
  account: Account,
  isActive = true,
  { name, image = 'any', team, at }: Inserted = {},
): Promise<string> {
  const created = newSandboxId()
  const id =
    at === undefined ? created : `sbx_${encodeTime(Date.parse(at)).toLowerCase()}${created.slice(14)}`
  const metadata = team === undefined ? {} : { 'team.of': team, image }
  await world.db.query(
    `insert into sandbox (id, account_id, name, image, metadata, pod_name, created_at, expires_at, max_expires_at, destroyed_at, destroy_reason, reaped_at)
     select ?, ?, ?, ?, ?, 'sbx-' || gen_random_uuid(), now, expires, expires, ended, case when ended is null then null else 'requested' end,
            coalesce(ended, now)
       from (select at as now, greatest(at, sandlot_now()) + interval '1 hour' as expires,
                    case when ? then null else at + interval '1 second' end as ended
               from (select coalesce(?, sandlot_now()) as at) as clock) as of`,
    [id, account.id, name ?? null, image, metadata, isActive, at ?? null],
  )
  return id
}
