/** At the end of a world: everything is destroyed, and then nothing may be left. */
import { readdirSync, readFileSync } from 'node:fs'
import { pino } from 'pino'
import { endSandbox } from '../../shared/data/sandboxes.ts'
import { openQueue } from '../../shared/platform/jobs.ts'
import { openDriver } from '../../workers/drivers/open.ts'
import { letClockRun } from './clock.ts'
import { eventually } from './eventually.ts'
import type { World } from './world.ts'

/** What ARCHITECTURE.md gives the workers to clean up, whatever was killed before. */
const cleanMs = 60_000

/** Ends every sandbox, and waits until the workers have seen the last of their pods. */
export async function endAllSandboxes(world: World): Promise<void> {
  const { db, redis } = world
  const unreaped = () => db.query<{ id: string }>('select id from sandbox where reaped_at is null')
  const rows = await unreaped()
  const hasPool = async () => (await db.query('select from warm_pod')).length > 0
  if (world.settings.pools.size > 0) {
    // Who goes by those settings would fill it again.
    await Promise.all(world.workers.map((worker) => worker.stop()))
  } else if (rows.length === 0 && !(await hasPool())) return
  // The sweep leaves what is newer than some seconds to the jobs.
  await letClockRun(db)
  const jobs = openQueue(redis)
  for (const { id } of rows) {
    await endSandbox(db, id, 'requested')
    await jobs.add('deletePod', { sandboxId: id, requestId: 'the end of a test' })
  }
  await jobs.close()
  // Whether those that were there still work is for the test to say.
  await world.startWorker({ SWEEP_SECONDS: '0.2', WARM_POOL_SIZE: '', WARM_POOLS: '' })
  await eventually(async () => (await unreaped()).length === 0 && !(await hasPool()), cleanMs)
}

/** @throws names every pod and process that outlived the world's processes */
export async function assertNothingLeft({ db, settings, folder }: World): Promise<void> {
  const [installation] = await db.query<{ id: string }>('select id from installation')
  const log = pino({ level: 'silent' })
  const driver = await openDriver({ settings, installationId: installation!.id, log })
  try {
    const pods = await driver.list()
    if (pods.length > 0) throw new Error(`pods were left behind: ${JSON.stringify(pods)}`)
  } finally {
    await driver.close()
  }
  const processes = processesNaming(`${folder}/sandboxes`)
  if (processes.length > 0) throw new Error(`processes were left behind:\n${processes.join('\n')}`)
}

function processesNaming(text: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => `${pid} ${commandLine(pid)}`)
    .filter((line) => line.includes(text))
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    // It ended while we looked.
    return ''
  }
}
