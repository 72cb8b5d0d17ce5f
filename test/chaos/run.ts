/** Runs traffic and faults, then checks the results. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type CommandSums, checkCommands } from './checks/commands.ts'
import { checkPods } from './checks/pods.ts'
import { checkRecovery, checkSizes, checkWarnings, type Size } from './checks/processes.ts'
import { checkSandboxes, type SandboxSums } from './checks/sandboxes.ts'
import { doFaults } from './faults/index.ts'
import { scheduleOf } from './faults/schedule.ts'
import type { Options } from './options.ts'
import { Recorder, type Wrong } from './recorder.ts'
import { openStage, type Stage } from './stage.ts'
import { runTenant } from './traffic/tenant.ts'

export interface Report {
  driver: Options['driver']
  seed: number
  startedAt: string
  seconds: number
  faults: { total: number; byName: Record<string, number> }
  operations: Record<string, Record<string, number>>
  commands: CommandSums
  sandboxes: SandboxSums
  sizes: Size[]
  wrong: { total: number; byWhat: Record<string, number>; shown: Wrong[] }
}

/** Number of tenants. It is lower on a cluster, because pods start slowly on a small node. */
const tenants = { local: 4, kubernetes: 2 }
const warmUpMs = 2_000
const logEveryMs = 60_000
const watchEveryMs = 200

export async function runChaos(options: Options, log: (line: string) => void): Promise<Report> {
  log(`chaos: seed ${options.seed}, ${options.driver} driver`)
  const startedAt = new Date().toISOString()
  await using rest = new AsyncDisposableStack()
  const stage = rest.use(await openStage(options))
  const recorder = new Recorder(() => stage.processes, log)
  const accounts = await Promise.all(
    Array.from({ length: tenants[options.driver] }, () => stage.world.account()),
  )
  let isOver = false
  const watching = watchProcesses(stage, recorder, () => isOver)
  const traffic = Promise.all(
    accounts.map((account, index) =>
      runTenant({ stage, recorder, account, seed: options.seed + index, isOver: () => isOver }),
    ),
  )
  await sleep(warmUpMs)

  const began = performance.now()
  const seconds = () => (performance.now() - began) / 1000
  let logged = 0
  const done = await doFaults({ stage, recorder }, scheduleOf(options.seed, options.driver), (total) => {
    if (seconds() * 1000 > (logged + 1) * logEveryMs) {
      logged++
      log(
        `chaos: ${total} faults in ${Math.round(seconds())} s, ${total > 0 ? sumOf(recorder.counts.wrong) : 0} wrong`,
      )
    }
    return total < options.faults && seconds() < options.minutes * 60
  })
  const lasted = seconds()
  isOver = true
  await Promise.all([traffic, watching])

  await checkRecovery(stage, recorder)
  await checkPods(stage, recorder)
  const commands = await checkCommands(stage.world.db, recorder)
  const sandboxes = await checkSandboxes(stage.world.db, recorder, accounts)
  const sizes = await checkSizes(stage, recorder)
  // Disposing a world stops its processes, and fails if orphans remain.
  await rest
    .disposeAsync()
    .catch((error) => recorder.wrong('there are orphans', String(error).slice(0, 2_000)))
  checkWarnings(stage, recorder)
  return {
    driver: options.driver,
    seed: options.seed,
    startedAt,
    seconds: Math.round(lasted),
    faults: { total: done.total, byName: Object.fromEntries(done.counts) },
    operations: Object.fromEntries(
      [...recorder.counts.operations].map(([name, of]) => [name, Object.fromEntries(of)]),
    ),
    commands,
    sandboxes,
    sizes,
    wrong: {
      total: sumOf(recorder.counts.wrong),
      byWhat: Object.fromEntries(recorder.counts.wrong),
      shown: recorder.wrongs,
    },
  }
}

const sumOf = (counts: Map<string, number>) => [...counts.values()].reduce((a, b) => a + b, 0)

/** Reports and replaces processes that exit unexpectedly. */
async function watchProcesses(stage: Stage, recorder: Recorder, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    for (const instance of stage.instances) {
      const exit = await Promise.race([instance.process.ended, undefined])
      if (exit === undefined || instance.isBeingEnded) continue
      instance.isBeingEnded = true
      const { name, lines } = instance.process
      recorder.wrong(
        'a process exited unexpectedly',
        { instance: instance.name, exit, last: lines.slice(-15) },
        [name],
      )
      await stage.replace(instance)
    }
    await sleep(watchEveryMs)
  }
}
