import { isIPv6 } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
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
import { collectStartupGarbage } from '../shared/platform/startup-garbage.ts'
import { commonChecks, listen, openInternalServer } from '../shared/rpc/internal-server.ts'
import { announceKeys } from '../shared/rpc/key-holders.ts'
import { openDriver } from './drivers/open.ts'
import type { ExecContext } from './exec/context.ts'
import { ExitStatusWriter } from './exec/exit-status-writer.ts'
import { followSandboxes } from './exec/follow-sandboxes.ts'
import { RefusedExecs } from './exec/refused-execs.ts'
import { Commands } from './exec/registry.ts'
import * as handlers from './handlers.ts'
import { finishJobs, takeJobs } from './jobs/queue.ts'
import { keepPool } from './pool/index.ts'
import { watchDeaths } from './reconciler/deaths.ts'
import { runReconciler } from './reconciler/reconcile.ts'
import { Activity, keepRecording } from './rpc/activity.ts'
import { announce } from './rpc/announce.ts'
import { CallServer, openChannel } from './rpc/server.ts'
import { followWorkers } from './shell/slot-owner.ts'
import { SlotPool } from './shell/slot-pool.ts'

/** Time limit for announcing the shutdown, which can hang while Redis is unavailable. */
const announceMs = 1_000
const closeMs = 3_000

export interface WorkerOptions {
  reach?: ExecContext['reach']
}

export async function startWorker(settings: Settings, { reach = () => {} }: WorkerOptions = {}) {
  const context = openContext('worker', settings)
  const { log } = context
  /** Aborts when the worker starts to drain. */
  const stopping = new AbortController()
  /** Aborts when the worker has drained, or when the time for draining has run out. */
  const closing = new AbortController()

  let worker: Parts | undefined
  const server = serveHealth(context, () => worker, stopping.signal)
  const id = newWorkerId()
  const channel = openChannel(id, settings.rpcKeys)
  const callServer = new CallServer(channel.server, handlers)
  const port = await listen(server, settings.internal, 'INTERNAL_PORT')
  const rpcPort = await listen(channel.server, settings.calls, 'RPC_PORT')
  log.info({ port, rpc_port: rpcPort }, 'listening')
  exitWhenStalled(settings.stallSeconds, log)

  worker = await openParts(context, id, reach, closing.signal)
  const { commands, driver, exitStatuses, slots, refusedExecs } = worker
  callServer.open(worker)
  const jobsRedis = connectRedis(settings.redisUrl, 'retry', log)
  const queue = takeJobs(worker, jobsRedis)
  watchDeaths(worker)
  followSandboxes(worker, closing.signal)
  void keepRecording(worker, closing.signal)
  const reconciling = runReconciler(worker, stopping.signal)
  const maintainingPool = keepPool(worker, stopping.signal)
  const withdrawKeys = announceKeys(context, 'worker')
  const { host } = settings.calls
  const announcement = await announce(worker, `https://${isIPv6(host) ? `[${host}]` : host}:${rpcPort}`)
  log.info({ worker_id: worker.id, driver: driver.kind }, 'working')
  collectStartupGarbage()

  return {
    /** Drains the worker for at most `maxMs`, then stops it. Other workers complete the remaining work. */
    async stop(maxMs = settings.drainSeconds * 1000) {
      stopping.abort()
      const end = performance.now() + maxMs
      await withTimeout(announceMs, announcement.drain())
      await withTimeout(
        end - performance.now(),
        Promise.allSettled([finishJobs(queue, jobsRedis), drainCommands(end), reconciling, maintainingPool]),
      )
      await withTimeout(closeMs, close())
    },
  }

  /** Waits until no command is running, and all exit statuses have been stored and delivered. */
  async function drainCommands(end: number) {
    callServer.refuseNew()
    const leftMs = () => Math.max(0, end - performance.now())
    // A call that arrives while the commands drain may still be unanswered when the last command has ended.
    do {
      await commands.drain(leftMs())
      await callServer.idle(leftMs())
    } while (leftMs() > 0 && (commands.pendingCount > 0 || !callServer.isIdle))
    await Promise.all([exitStatuses.idle(), refusedExecs.idle()])
  }

  async function close() {
    closing.abort()
    await Promise.all([announcement.withdraw(), withdrawKeys()])
    server.closeAllConnections()
    channel.close()
    server.close()
    await queue.close(true).catch(() => {})
    exitStatuses.close()
    refusedExecs.close()
    slots.close()
    await driver.close()
    jobsRedis.disconnect()
    await context.close()
  }
}

const serveHealth = (context: Context, workerOf: () => Parts | undefined, stopping: AbortSignal) =>
  openInternalServer(
    context,
    {
      ...commonChecks(context),
      cluster: async () => {
        const worker = workerOf()
        if (!worker) throw new Error('waiting for the database')
        await worker.driver.ping()
      },
    },
    { isDraining: () => stopping.aborted, countExecs: () => workerOf()?.commands.pendingCount ?? 0 },
  )

type Parts = Awaited<ReturnType<typeof openParts>>

async function openParts(context: Context, id: string, reach: ExecContext['reach'], signal: AbortSignal) {
  const { db, log, metrics, settings } = context
  const installationId = await waitForInstallation(db, log)
  const driver = await openDriver({ settings, installationId, log })
  const refusedExecs = new RefusedExecs(db, log)
  return {
    ...context,
    ...{ id, reach, driver, refusedExecs },
    opener: makeOpener(settings.secretsKeys),
    commands: new Commands(refusedExecs, context.memoryBudget),
    exitStatuses: new ExitStatusWriter(db, log),
    slots: new SlotPool({ driver, log, metrics }),
    slotOwner: followWorkers({ ...context, id }, signal),
    activity: new Activity(),
  }
}

/** Waits until the database is reachable and its migrations have run. Returns the installation's ID. */
async function waitForInstallation(db: Database, log: Logger): Promise<string> {
  for (let isLogged = false; ; isLogged = true) {
    try {
      const id = await readInstallation(db)
      if (id) return id
    } catch (error) {
      if (!isLogged) log.warn({ err: error }, 'waiting for the database')
    }
    await sleep(500)
  }
}
