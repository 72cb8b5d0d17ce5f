import { describe, expect, test } from 'vitest'
import { podName } from '../../shared/data/ids.ts'
import { run, shell } from '../drivers/processes.ts'
import { hasCluster } from '../support/cluster.ts'
import { openWorldDriver } from '../support/drivers.ts'
import { shareSandbox } from '../support/shared.ts'

describe.skipIf(!hasCluster)('lost slots on a cluster', () => {
  const { world, params, sh } = shareSandbox({ driver: 'kubernetes', wire: true })

  test('if the shell (slot) assigned to a command dies before the command starts, another shell runs it once', async () => {
    const driver = await openWorldDriver(world)
    const inPod = async (line: string) =>
      (await run(driver, { name: podName(params.id) }, shell(line))).stdout.trim().split('\n')
    const waiting = "grep -l '[I]FS= read' /proc/[0-9]*/cmdline | cut -d/ -f3"
    // The trigger delays the insert until the slot is gone. A lock would time out earlier.
    await world.db.query('create table held as select 1')
    await world.db.query(
      `create function hold() returns trigger language plpgsql as $$ begin
         while exists (select from held) loop perform pg_sleep(0.02); end loop;
         return new; end $$`,
    )
    await world.db.query('create trigger held before insert on exec for each row execute function hold()')
    const release = () => world.db.query('delete from held')
    try {
      const answer = sh('echo x >>runs; cat runs')
      await world.eventually(async () => (await inPod(waiting)).length >= 2, 10_000)
      const connections = world.wire!.connections()
      const pids = await inPod(waiting)
      await inPod(`kill -KILL ${pids.join(' ')}`)
      await world.eventually(() => world.wire!.connections() <= connections - pids.length, 10_000)
      await release()
      expect(await answer).toMatchObject({ status: 'exited', exit_code: 0, stdout: 'x\n' })
    } finally {
      await release()
      await driver.close()
    }
  })
})
