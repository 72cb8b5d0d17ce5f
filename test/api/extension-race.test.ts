/**
 * Extensions race the expiry of their sandboxes, which a worker ends at the same time. A sandbox lives until
 * the last `expires_at` that a client received, and ends at exactly that time.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { newSandboxId } from '../../shared/data/ids.ts'
import { makeRandom } from '../chaos/random.ts'
import { Refusal } from '../support/account.ts'
import { isSoak } from '../support/eventually.ts'
import { seed } from '../support/seed.ts'
import { shareWorld } from '../support/shared.ts'

/** A sandbox without a pod is left alone until it is 5 s old. */
const maxExtensions = 2

/** A request sent more than its TTL of 1 s before the expiry would shorten the lifetime. */
const maxLeadMs = 1_000
/** Of eight pairs of requests, one is early and one is late on any machine. The others aim at the expiry. */
const leads = [maxLeadMs, undefined, undefined, undefined, -300, undefined, undefined, undefined]

const world = shareWorld({
  apis: 2,
  env: {
    RECONCILE_INTERVAL_SECONDS: '0.1',
    RATE_CHANGES_PER_MINUTE: '100000',
    RATE_READS_PER_MINUTE: '100000',
  },
})

const extensions = isSoak ? 1_000 : 100
/** Number of sandboxes, each of which receives two requests at a time. */
const concurrency = isSoak ? 30 : 8

test('a TTL extension sent at the moment of expiry takes effect only if its response reports success', async () => {
  const alice = await world.account()
  const outcomes = { extended: 0, refused: 0 }
  const expected = new Map<string, string>()
  let started = 0
  const random = makeRandom(seed)
  /** Running average, so that requests reach the database around the expiry even on a slow machine. */
  let latencyMs = 20

  async function race(): Promise<void> {
    const id = newSandboxId()
    const [row] = await world.db.query<{ expires_at: string }>(
      `insert into sandbox (id, account_id, image, pod_name, created_at, expires_at, max_expires_at)
       values (?, ?, 'any', 'sbx-' || gen_random_uuid(), sandlot_now(), sandlot_now() + interval '2 s',
               sandlot_now() + interval '30 min') returning expires_at`,
      [id, alice.id],
    )
    let expiresAt = new Date(row!.expires_at).toISOString()
    expected.set(id, expiresAt)
    for (let count = 0; count < maxExtensions && started < extensions; count++) {
      const aimedMs = Math.min(maxLeadMs, (30 + 2 * latencyMs) * random())
      const leadMs = leads[(started / 2) % leads.length] ?? aimedMs
      started += 2
      await sleep(Math.max(1, Date.parse(expiresAt) - Date.now() + 15 - leadMs))
      const [one, other] = await Promise.all([extend(id, 0), extend(id, 1)])
      const extended = [one, other].filter(({ isExtended }) => isExtended)
      const last = extended
        .map(({ expiresAt }) => expiresAt)
        .sort()
        .at(-1)
      if (last) {
        expect(Date.parse(last)).toBeGreaterThan(Date.parse(expiresAt))
        expiresAt = last
        expected.set(id, expiresAt)
      }
      outcomes.extended += extended.length
      outcomes.refused += 2 - extended.length
      if (extended.length === 2) continue
      // If only one was refused, it arrived after the extended sandbox had expired again.
      const { body } = await alice.call('getSandbox', { params: { id } })
      expect(body).toMatchObject({ state: 'destroyed', expires_at: expiresAt, destroyed_at: expiresAt })
      return
    }
  }
  async function extend(id: string, api: number) {
    const sentAt = performance.now()
    try {
      const call = alice.call('updateSandbox', { params: { id }, body: { ttl_seconds: 1 }, api })
      const { body } = await call
      expect(body).toMatchObject({ state: 'active', destroy_reason: null })
      return { isExtended: true, expiresAt: body.expires_at }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      expect(error.problem).toMatchObject({ code: 'sandbox_destroyed', destroy_reason: 'expired' })
      return { isExtended: false, expiresAt: '' }
    } finally {
      latencyMs = 0.9 * latencyMs + 0.1 * (performance.now() - sentAt)
    }
  }
  const lane = async () => {
    while (started < extensions) await race()
  }
  await Promise.all(Array.from({ length: concurrency }, lane))

  expect(outcomes.extended + outcomes.refused).toBe(extensions)
  expect(outcomes.extended).toBeGreaterThan(0)
  expect(outcomes.refused).toBeGreaterThan(0)
  const rows = await world.eventually(async () => {
    const all = await world.db.query<{
      id: string
      expires_at: string
      destroyed_at: string
      destroy_reason: string
    }>('select id, expires_at, destroyed_at, destroy_reason from sandbox where account_id = ?', [alice.id])
    return all.every(({ destroyed_at }) => destroyed_at !== null) ? all : undefined
  }, 30_000)
  expect(rows).toHaveLength(expected.size)
  for (const { id, expires_at, destroyed_at, destroy_reason } of rows) {
    expect(destroy_reason).toBe('expired')
    expect(new Date(expires_at).toISOString()).toBe(expected.get(id))
    expect(new Date(destroyed_at).toISOString()).toBe(expected.get(id))
  }
})
