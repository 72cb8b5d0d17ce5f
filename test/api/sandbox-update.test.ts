/** PATCH of a sandbox, and requests to a sandbox that has expired but that no worker has destroyed yet. */
import { expect, test } from 'vitest'
import { type CallOptions, expectRefusal } from '../support/account.ts'
import { describeOnBothDriversAtOnce } from '../support/drivers.ts'
import { shareSandbox } from '../support/shared.ts'

/** The reconciler does not run during the tests, so only requests change or end sandboxes. */
const env = {
  RECONCILE_INTERVAL_SECONDS: '3600',
  QUOTA_CONCURRENT_SANDBOXES: '10',
  SANDBOX_MAX_SECONDS: '1800',
}

describeOnBothDriversAtOnce('an update', (driver) => {
  const { world, alice, params, waitForExit } = shareSandbox({ driver, env })
  const update = (body: NonNullable<CallOptions<'updateSandbox'>['body']>) =>
    alice.call('updateSandbox', { params, body })
  const readRow = async (id = params.id) => {
    const [row] = await world.db.query<{
      created_at: Date
      expires_at: Date
      max_expires_at: Date
      now: Date
    }>('select created_at, expires_at, max_expires_at, sandlot_now() as now from sandbox where id = ?', [id])
    return row!
  }

  test('an update changes only the fields that it contains', async () => {
    const { body } = await update({ name: 'web', metadata: { team: 'red', tier: '1' } })
    expect(body).toMatchObject({ name: 'web', metadata: { team: 'red', tier: '1' } })
    expect((await update({ metadata: { team: 'blue' } })).body).toEqual({
      ...body,
      metadata: { team: 'blue' },
      billed_seconds: expect.any(Number),
    })
    expect((await update({ name: null })).body).toMatchObject({ name: null, metadata: { team: 'blue' } })
    expect((await alice.call('getSandbox', { params })).body).toMatchObject({
      name: null,
      expires_at: body.expires_at,
    })
  })

  test('a new TTL counts from the time of the request, so it can shorten or extend the lifetime', async () => {
    for (const ttl_seconds of [60, 600, 120]) {
      const { now: before } = await readRow()
      const { body } = await update({ ttl_seconds })
      const { now: after, expires_at } = await readRow()
      expect(body.expires_at).toBe(new Date(expires_at).toISOString())
      expect(Date.parse(body.expires_at) - ttl_seconds * 1000).toBeGreaterThanOrEqual(
        new Date(before).getTime(),
      )
      expect(Date.parse(body.expires_at) - ttl_seconds * 1000).toBeLessThanOrEqual(new Date(after).getTime())
    }
  })

  test("rejects a TTL that would exceed the account's maximum lifetime, counted from creation", async () => {
    const { created_at, max_expires_at, expires_at } = await readRow()
    expect(new Date(max_expires_at).getTime() - new Date(created_at).getTime()).toBe(1_800_000)
    const refused = await expectRefusal(update({ ttl_seconds: 1800 }))
    expect(refused.problem).toMatchObject({ code: 'invalid_request', errors: [{ path: 'ttl_seconds' }] })
    expect(refused.problem.errors![0]!.message).toContain(new Date(max_expires_at).toISOString())
    expect((await readRow()).expires_at).toEqual(expires_at)
  })

  test("a command keeps running when its sandbox's lifetime is extended", async () => {
    await update({ ttl_seconds: 5 })
    const { expires_at } = await readRow()
    const command = 'sleep 6; echo done'
    const { body } = await alice.call('execCommand', { params, body: { command, background: true } })
    await update({ ttl_seconds: 600 })
    expect(await waitForExit(body.id)).toMatchObject({ status: 'exited', exit_code: 0 })
    expect(new Date((await readRow()).now).getTime()).toBeGreaterThan(new Date(expires_at).getTime())
  })

  test('a destroyed or unknown sandbox cannot be updated', async () => {
    const bob = await world.account()
    const others = bob.call('updateSandbox', { params, body: { name: 'stolen' } })
    expect((await expectRefusal(others)).code).toBe('not_found')
    const { body } = await alice.call('createSandbox')
    await alice.call('destroySandbox', { params: { id: body.id } })
    const late = alice.call('updateSandbox', { params: { id: body.id }, body: { ttl_seconds: 60 } })
    expect((await expectRefusal(late)).code).toBe('sandbox_destroyed')
  })

  test('every request treats an expired sandbox as destroyed, even before a worker destroys it', async () => {
    const own = await world.account()
    const { id } = (await own.call('createSandbox')).body
    const one = { params: { id } }
    await world.db.query('update sandbox set expires_at = sandlot_now() where id = ?', [id])
    const { body } = await own.call('getSandbox', one)
    expect(body).toMatchObject({
      state: 'destroyed',
      destroy_reason: 'expired',
      destroyed_at: body.expires_at,
    })
    const idsIn = async (state: 'active' | 'destroyed') =>
      (await own.call('listSandboxes', { query: { state } })).body.data.map((it) => it.id)
    expect([await idsIn('active'), await idsIn('destroyed')]).toEqual([[], [id]])
    expect((await own.call('getAccount')).body.concurrent.active).toBe(0)
    const refused = [
      () => own.call('updateSandbox', { ...one, body: { ttl_seconds: 60 } }),
      () => own.call('execCommand', { ...one, body: { command: 'true' } }),
      () => own.call('listFiles', one),
      () => own.call('resetSandbox', one),
      () => own.call('createSecret', { body: { name: 'LATE', value: 'x', sandbox_id: id } }),
    ]
    for (const call of refused)
      expect((await expectRefusal(call())).code).toMatch(/^(sandbox_destroyed|not_found)$/)
    expect((await own.call('destroySandbox', one)).body).toEqual(body)
    await own.call('createSandbox')
    expect((await own.call('getSandbox', one)).body).toEqual(body)
  })
})
