/** Puts a worker together, and takes it apart again. */

import { isIPv6 } from 'node:net'
import type { Database } from '../shared/data/database.ts'
import { newWorkerId } from '../shared/data/ids.ts'
import { readInstallation } from '../shared/data/installation.ts'
import { withTimeout } from '../shared/lib/timeout.ts'
import { type Context, openContext } from '../shared/platform/context.ts'
import type { Logger } from '../shared/platform/log.ts'
import { connectRedis } from '../shared/platform/redis.ts'
import { makeOpener } from '../shared/platform/seal.ts'
import type { Settings } from '../shared/platform/settings.ts'
import { exitWhenStalled } from '../shared/platform/stall.ts'
import { commonChecks, listen, openInternalServer } from '../shared/rpc/internal-server.ts'
import { announceKeys } from '../shared/rpc/key-holders.ts'
import { openDriver } from './drivers/open.ts'
import type { ExecContext } from './exec/context.ts'
import { ExitStatusWriter } from './exec/exit-status-writer.ts'
import { followSandboxes } from './exec/follow-sandboxes.ts'
import { OutputRate } from './exec/output-rate.ts'
import { Commands } from './exec/registry.ts'
import { TakenBack } from './exec/taken-back.ts'
import * as handlers from './handlers.ts'
import { finishJobs, takeJobs } from './jobs/queue.ts'
import { keepPool } from './pool/index.ts'
import { watchDeaths } from './reconciler/deaths.ts'
import { runReconciler } from './reconciler/reconcile.ts'
import { announce } from './rpc/announce.ts'
import { openChannel } from './rpc/channel.ts'
import { CallServer } from './rpc/server.ts'
import { followWorkers } from './shell/slot-owner.ts'
import { SlotPool } from './shell/slot-pool.ts'

/** Milliseconds to tell others that it stops, and to close connections: without Redis or PostgreSQL that may hang. */
const tellMs = 1_000
const closeMs = 3_000

export interface WorkerOptions {
  reach?: ExecContext['reach']
}

export async function startWorker(settings: Settings, { reach = () => {} }: WorkerOptions = {}) {
  const context = openContext('worker', settings)
  const { log } = context
  /** It takes nothing new from here on. */
  const stopping = new AbortController()
  /** It holds nothing any more, or may hold it no longer. */
  const closing = new AbortController()

  let worker: Parts | undefined
  const server = serveHealth(context, () => worker)
  const id = newWorkerId()
  const channel = openChannel(id, settings.rpcKeys)
  const callServer = new CallServer(channel.server, handlers)
  const port = await listen(server, settings.internal, 'INTERNAL_PORT')
  const callsPort = await listen(channel.server, settings.calls, 'RPC_PORT')
  log.info({ port, calls_port: callsPort }, 'listening')
  exitWhenStalled(settings.stallSeconds, log)

  worker = await openParts(context, id, reach, closing.signal)
  const { commands, driver, ends, slots, takenBack } = worker
  callServer.open(worker)
  const jobsRedis = connectRedis(settings.redisUrl, 'patient', log)
  const queue = takeJobs(worker, jobsRedis)
  watchDeaths(worker)
  followSandboxes(worker, closing.signal)
  const sweeping = runReconciler(worker, stopping.signal)
  const keeping = keepPool(worker, stopping.signal)
  const withdrawKeys = announceKeys(context, 'worker')
  const { host } = settings.calls
  const announcement = await announce(worker, `https://${isIPv6(host) ? `[${host}]` : host}:${callsPort}`)
  log.info({ worker_id: worker.id, driver: driver.kind }, 'working')

  return {
    /** Finishes what it holds, for a bounded time. Another worker or the sweep takes up the rest. */
    async stop(mostMs = settings.drainSeconds * 1000) {
      stopping.abort()
      const end = performance.now() + mostMs
      await withTimeout(tellMs, announcement.drain())
      await withTimeout(
        end - performance.now(),
        Promise.allSettled([finishJobs(queue, jobsRedis), serveCommands(end), sweeping, keeping]),
      )
      await withTimeout(closeMs, close())
    },
  }

  /** Until none runs, and each that has just ended has told its end to whoever follows it, or comes back to. */
  async function serveCommands(end: number) {
    callServer.refuseNew()
    const leftMs = () => Math.max(0, end - performance.now())
    // A call may come while a command is waited for, and its answer is still on the way when that has ended.
    do {
      await commands.drain(leftMs())
      await callServer.idle(leftMs())
    } while (leftMs() > 0 && (commands.areHeld || !callServer.isIdle))
    await Promise.all([ends.written(), takenBack.done()])
  }

  async function close() {
    closing.abort()
    await Promise.all([announcement.withdraw(), withdrawKeys()])
    server.closeAllConnections()
    channel.close()
    server.close()
    await queue.close(true).catch(() => {})
    ends.close()
    takenBack.close()
    slots.close()
    await driver.close()
    jobsRedis.disconnect()
    await context.close()
  }
}

const serveHealth = (context: Context, workerOf: () => Parts | undefined) =>
  openInternalServer(context, {
    ...commonChecks(context),
    cluster: async () => {
      const worker = workerOf()
      if (!worker) throw new Error('waiting for the database')
      await worker.driver.ping()
    },
  })

/** Each room takes some of these, by its own type. */
type Parts = Awaited<ReturnType<typeof openParts>>

async function openParts(context: Context, id: string, reach: ExecContext['reach'], signal: AbortSignal) {
  const { db, log, metrics, settings } = context
  const installationId = await waitForInstallation(db, log)
  const driver = await openDriver({ settings, installationId, log })
  const takenBack = new TakenBack(db, log)
  return {
    ...context,
    ...{ id, reach, driver, takenBack },
    opener: makeOpener(settings.secretsKeys),
    commands: new Commands(takenBack, context.memoryBudget),
    ends: new ExitStatusWriter(db, log),
    slots: new SlotPool({ driver, log, metrics }),
    slotOwner: followWorkers({ ...context, id }, signal),
    outputRate: new OutputRate(),
  }
}

/** Waits for a database that is away, or not migrated yet. */
async function waitForInstallation(db: Database, log: Logger): Promise<string> {
  for (let told = false; ; told = true) {
    try {
      const id = await readInstallation(db)
      if (id) return id
    } catch (error) {
      if (!told) log.warn({ err: error }, 'waiting for the database')
    }
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}
