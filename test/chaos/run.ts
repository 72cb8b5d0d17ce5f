/** A run: traffic, faults, quiet, checks. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type CommandSums, checkCommands } from './checks/commands.ts'
import { checkPods } from './checks/pods.ts'
import { checkRecovery, checkSizes, checkWarnings, type Size } from './checks/processes.ts'
import { checkSandboxes, type SandboxSums } from './checks/sandboxes.ts'
import { doFaults } from './faults/index.ts'
import { scheduleOf } from './faults/schedule.ts'
import { Ledger, type Wrong } from './ledger.ts'
import type { Options } from './options.ts'
import { openStage, type Stage } from './stage.ts'
import { runTenant } from './traffic/tenant.ts'

export interface Report {
  driver: Options['driver']
  seed: number
  startedAt: string
  /** Of only the faults, in seconds. */
  seconds: number
  faults: { total: number; byName: Record<string, number> }
  /** By operation, how often each outcome. */
  operations: Record<string, Record<string, number>>
  commands: CommandSums
  sandboxes: SandboxSums
  sizes: Size[]
  /** In all, and by what it was. */
  wrong: { total: number; byWhat: Record<string, number>; shown: Wrong[] }
}

/** Pods of a cluster take a small node longer to start. */
const tenants = { local: 4, kubernetes: 2 }
/** Traffic is there before the first fault. */
const warmUpMs = 2_000
const sayEveryMs = 60_000
const watchEveryMs = 200

export async function runChaos(options: Options, say: (line: string) => void): Promise<Report> {
  say(`chaos: seed ${options.seed}, ${options.driver} driver`)
  const startedAt = new Date().toISOString()
  await using rest = new AsyncDisposableStack()
  const stage = rest.use(await openStage(options))
  const ledger = new Ledger(() => stage.processes, say)
  const accounts = await Promise.all(
    Array.from({ length: tenants[options.driver] }, () => stage.world.account()),
  )
  let isOver = false
  const watching = watchProcesses(stage, ledger, () => isOver)
  const traffic = Promise.all(
    accounts.map((account, index) =>
      runTenant({ stage, ledger, account, seed: options.seed + index, isOver: () => isOver }),
    ),
  )
  await sleep(warmUpMs)

  const began = performance.now()
  const seconds = () => (performance.now() - began) / 1000
  let said = 0
  const done = await doFaults({ stage, ledger }, scheduleOf(options.seed, options.driver), (total) => {
    if (seconds() * 1000 > (said + 1) * sayEveryMs) {
      said++
      say(
        `chaos: ${total} faults in ${Math.round(seconds())} s, ${total > 0 ? sumOf(ledger.counts.wrong) : 0} wrong`,
      )
    }
    return total < options.faults && seconds() < options.minutes * 60
  })
  const lasted = seconds()
  isOver = true
  await Promise.all([traffic, watching])

  await checkRecovery(stage, ledger)
  await checkPods(stage, ledger)
  const commands = await checkCommands(stage.world.db, ledger)
  const sandboxes = await checkSandboxes(stage.world.db, ledger, accounts)
  const sizes = await checkSizes(stage, ledger)
  // A world ends every process in order, and looks for what is left.
  await rest
    .disposeAsync()
    .catch((error) => ledger.wrong('something was left behind', String(error).slice(0, 2_000)))
  checkWarnings(stage, ledger)
  return {
    driver: options.driver,
    seed: options.seed,
    startedAt,
    seconds: Math.round(lasted),
    faults: { total: done.total, byName: Object.fromEntries(done.counts) },
    operations: Object.fromEntries(
      [...ledger.counts.operations].map(([name, of]) => [name, Object.fromEntries(of)]),
    ),
    commands,
    sandboxes,
    sizes,
    wrong: {
      total: sumOf(ledger.counts.wrong),
      byWhat: Object.fromEntries(ledger.counts.wrong),
      shown: ledger.wrongs,
    },
  }
}

const sumOf = (counts: Map<string, number>) => [...counts.values()].reduce((a, b) => a + b, 0)

/** A process that ends by itself is wrong, and is replaced so that the rest goes on. */
async function watchProcesses(stage: Stage, ledger: Ledger, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    for (const seat of stage.seats) {
      const end = await Promise.race([seat.process.ended, undefined])
      if (end === undefined || seat.isBeingEnded) continue
      seat.isBeingEnded = true
      const { name, lines } = seat.process
      ledger.wrong('a process ended by itself', { seat: seat.name, end, last: lines.slice(-15) }, [name])
      await stage.replace(seat)
    }
    await sleep(watchEveryMs)
  }
}
