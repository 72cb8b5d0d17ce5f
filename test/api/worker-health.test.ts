/** Liveness checks of a worker with open RPCs (api/worker-client/health.ts). */
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { WorkerHealth } from '../../api/worker-client/health.ts'
import { livenessTimeoutsOf } from '../../shared/platform/liveness-timeouts.ts'
import { listWorkers } from '../../shared/rpc/worker-registry.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ apis: 0 })
const unlimitedMs = 3_600_000

/** Freezes the worker, and checks its liveness. */
async function followFrozen(answer: number, bytesMoved = () => 0) {
  const [worker] = world.workers
  const livenessTimeouts = { ...livenessTimeoutsOf(3), answer, last: (answer * 2) / 3 }
  const health = new WorkerHealth(pino({ level: 'silent' }), livenessTimeouts)
  const [listed] = await world.eventually(async () => {
    const list = await listWorkers(world)
    return list.length === 1 ? list : undefined
  }, 10_000)
  worker!.signal('SIGSTOP')
  const reports: string[] = []
  health.follow(listed!, () => reports.push('silent'), bytesMoved)
  const wake = () => {
    livenessTimeouts.answer = unlimitedMs
    worker!.signal('SIGCONT')
  }
  onTestFinished(() => {
    wake()
    health.close()
  })
  const isAsked = () => Object.keys(health.agent.sockets).length > 0
  const isAnswered = () => Object.keys(health.agent.freeSockets).length > 0
  return { reports, wake, isAsked, isAnswered, isSilent: () => health.isSilent(listed!.id) }
}

test('an unresponsive worker is reported only once until it responds again', async () => {
  const { reports, wake, isSilent } = await followFrozen(300)
  await world.eventually(() => reports.length > 0, 10_000)
  expect(isSilent()).toBe(true)
  wake()
  await world.eventually(() => !isSilent(), 10_000)
  expect(reports).toEqual(['silent'])
})

test('a worker counts as alive while its calls transfer bytes', async () => {
  let reads = 0
  const { reports, isSilent } = await followFrozen(300, () => reads++)
  // Each check reads the counter twice.
  await world.eventually(() => reads >= 5, 10_000)
  expect({ reports, isSilent: isSilent() }).toEqual({ reports: [], isSilent: false })
})

test('after an API process and a worker stall at the same time, the API process checks the worker again', async () => {
  const answer = 1_500
  const { reports, wake, isAsked, isAnswered, isSilent } = await followFrozen(answer)
  await world.eventually(isAsked, 10_000)
  // Blocks this process, so that the response to the check is late.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, answer + 1_000)
  wake()
  await world.eventually(isAnswered, 10_000)
  expect({ reports, isSilent: isSilent() }).toEqual({ reports: [], isSilent: false })
})
