/** Races a create against a destroy of the same sandbox. */
import pLimit from 'p-limit'
import { expect } from 'vitest'
import { findSandbox } from '../../shared/data/sandboxes.ts'
import type { DriverName } from '../support/drivers.ts'
import { startWorld, type World } from '../support/index.ts'

const atOnce = { local: 12, kubernetes: 8 }

/** Stages of the create at which the destroy is sent. */
const stages = ['at once', 'any time', 'the pod is there', 'ready'] as const

async function reach(stage: (typeof stages)[number], world: World, id: string, round: number) {
  if (stage === 'any time') await new Promise((resolve) => setTimeout(resolve, round % 300))
  if (stage === 'the pod is there')
    await world.eventually(async () => (await findSandbox(world.db, id))?.pod_uid, 60_000)
  if (stage === 'ready')
    await world.eventually(async () => (await findSandbox(world.db, id))?.ready_at, 60_000)
}

/** @throws if a pod, an unfinished row or a usage difference remains */
export async function raceCreatesAndDestroys(driver: DriverName, rounds: number): Promise<void> {
  await using world = await startWorld({
    driver,
    apis: 2,
    workers: 2,
    env: { QUOTA_CONCURRENT_SANDBOXES: '1000' },
  })
  const alice = await world.account()
  const limit = pLimit(atOnce[driver])
  const race = async (round: number) => {
    const { body } = await alice.call('createSandbox', {
      headers: { prefer: 'respond-async' },
      api: round % 2,
    })
    await reach(stages[round % stages.length]!, world, body.id, round)
    const destroyed = await alice.call('destroySandbox', { params: { id: body.id }, api: (round + 1) % 2 })
    expect(destroyed.body.state).toBe('destroyed')
  }
  await Promise.all(Array.from({ length: rounds }, (_, round) => limit(race, round)))

  const count = async (where: string) => {
    const [row] = await world.db.query<{ count: string }>(`select count(*) from sandbox where ${where}`)
    return Number(row!.count)
  }
  expect(await count('destroyed_at is null')).toBe(0)
  await world.eventually(async () => (await count('reaped_at is null')) === 0, 60_000)
  // Some sandboxes must be destroyed before they are ready, and some after.
  expect(await count('ready_at is null')).toBeGreaterThan(0)
  expect(await count('ready_at is not null')).toBeGreaterThan(0)
  const [billed] = await world.db.query<{ ms: string }>(
    `select coalesce(sum(extract(epoch from destroyed_at - ready_at) * 1000), 0)::bigint as ms from sandbox`,
  )
  expect((await alice.call('getAccount')).body.usage.milliseconds).toBe(Number(billed!.ms))
}
