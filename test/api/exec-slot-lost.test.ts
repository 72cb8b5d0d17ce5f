/** A command on a cluster whose slot is lost before it began. */
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { podName } from '../../shared/data/ids.ts'
import { openDriver } from '../../workers/drivers/open.ts'
import { run, shell } from '../drivers/processes.ts'
import { hasCluster } from '../support/cluster.ts'
import { shareSandbox } from '../support/shared.ts'

describe.skipIf(!hasCluster)('a command that loses', () => {
  const { world, params, sh } = shareSandbox({ driver: 'kubernetes', wire: true })

  test('its slot before it began runs in another one, once', async () => {
    const [installation] = await world.db.query<{ id: string }>('select id from installation')
    const log = pino({ level: 'silent' })
    const driver = await openDriver({ settings: world.settings, installationId: installation!.id, log })
    const inPod = async (line: string) =>
      (await run(driver, { name: podName(params.id) }, shell(line))).stdout.trim().split('\n')
    const waiting = "grep -l '[I]FS= read' /proc/[0-9]*/cmdline | cut -d/ -f3"
    const [locked, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    // The command has its slot when it is written down; that is held up until the slot is gone.
    const lock = world.db.transaction(async (db) => {
      await db.query('lock table exec in exclusive mode')
      locked.resolve()
      await release.promise
    })
    try {
      await locked.promise
      const answer = sh('echo x >>runs; cat runs')
      await world.eventually(async () => (await inPod(waiting)).length >= 3, 10_000)
      const connections = world.wire!.connections()
      const pids = await inPod(waiting)
      await inPod(`kill -KILL ${pids.join(' ')}`)
      await world.eventually(() => world.wire!.connections() <= connections - pids.length, 10_000)
      release.resolve()
      expect(await answer).toMatchObject({ status: 'exited', exit_code: 0, stdout: 'x\n' })
    } finally {
      release.resolve()
      await lock
      await driver.close()
    }
  })
})
