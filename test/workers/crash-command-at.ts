/**
 * Kills a worker while a command starts or ends.
 * The reported exit status must not change, no process may remain, and the sandbox must keep running.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import { listExecs } from '../../shared/data/execs.ts'
import type { CommandCrashPoint } from '../../workers/faults/crash-points.ts'
import { moveClockOfRedis } from '../support/clock.ts'
import type { DriverName } from '../support/drivers.ts'
import { defaultLiveness } from '../support/eventually.ts'
import { startWorld, type World } from '../support/index.ts'
import { inside } from '../support/sandbox-commands.ts'

interface Crash {
  request: ExecRequest
  /** The exit status that the client receives. Defaults to `lost`. */
  told?: object
  hasRun?: boolean
}

/** Ignores SIGHUP, and does not end at EOF. */
const long = `trap '' HUP; touch ran; exec sleep 4327`
const lost = { status: 'lost', exit_code: null }

const short = 'touch ran; exit 7'

const crashes: Record<CommandCrashPoint, Crash> = {
  'start: the row exists, the command does not run': { request: { command: long }, hasRun: false },
  'start: the terminal waits, its pid is not recorded': {
    request: { command: long, tty: true },
    hasRun: false,
  },
  'start: the command runs, no client has been notified': { request: { command: long } },
  'end: the command has ended, its exit status is not recorded': { request: { command: short } },
  'end: the row has the exit status, no client has been notified': {
    request: { command: short },
    told: { status: 'exited', exit_code: 7 },
  },
}

export function describeCommandCrashes(driver: DriverName, points: readonly CommandCrashPoint[]): void {
  let world: World
  beforeAll(async () => {
    world = await startWorld({ driver, workers: 0 })
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  test.each(points)(
    'a worker crash at "%s" changes no reported exit status and leaves no process behind',
    async (point) => {
      const { request, told = lost, hasRun = true } = crashes[point]
      const alice = await world.account()
      const doomed = await world.startDoomedWorker(point)
      const { body: params } = await alice.call('createSandbox')
      const { body: answer } = await alice.call('execCommand', { params, body: request })
      expect(await doomed.ended).toBe('SIGKILL')
      expect(answer).toMatchObject(told)

      // Unregistered workers are soon considered lost.
      await moveClockOfRedis(world.redis, world.settings.livenessTimeouts.stale)
      const worker = await world.startWorker(defaultLiveness)
      const { countOf, sh } = inside(alice, params)
      await world.eventually(async () => (await countOf('[s]leep 4327')) === 0, 30_000)
      await world.eventually(async () => {
        const left = await world.db.query("select from exec where is_left or status = 'running'")
        return left.length === 0
      }, 30_000)
      expect(await countOf('/[.]sandlot-')).toBe(0)
      expect((await sh('ls -A /tmp; ls')).stdout).toBe(hasRun ? 'ran\n' : '')
      const rows = await listExecs(world.db, { sandboxId: params.id, before: null, limit: 100 })
      expect(rows.find(({ id }) => id === answer.id)).toMatchObject(told)
      await worker.stop()
    },
  )
}
