/** Starts the databases and the Procfile's processes, and stops them in reverse order. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { destroyAllSandboxes } from '../../workers/drivers/local/destroy-all.ts'
import { buildCli } from '../build-cli.mjs'
import { root } from '../root.mjs'
import { findBubblewrap } from '../services/bubblewrap.ts'
import { postgresUrl, preparePostgres } from '../services/postgres.ts'
import { prepareRedis, redisUrl } from '../services/redis.ts'
import { type Service, startService } from '../services/service.ts'
import { runApplication, startApplication } from './application.ts'
import { guardCluster } from './cluster.ts'
import {
  guardDataFolder,
  openWatchdog,
  prepareDataFolder,
  socketFolder,
  waitForWatchdog,
} from './data-folder.ts'
import { keepRunning, type Stoppable } from './keep-running.ts'
import { openOutput } from './output.ts'
import { parseProcfile, planProcesses } from './plan.ts'
import {
  childEnvironment,
  type FoundServices,
  keyEnvironment,
  readStackSettings,
  type StackSettings,
} from './stack-settings.ts'
import type { Watchdog } from './watchdog.ts'

export interface Stack {
  /** Resolves with the API's URL. Rejects with a user-facing error if startup fails. */
  ready: Promise<string>
  /** Rejects with a user-facing error when the stack cannot continue. */
  failed: Promise<never>
  stop(): Promise<void>
}

/** @param args for example `--workers 3` or `--apis 2` */
export function startStack(args: string[], report: (line: string) => void): Stack {
  const applications: Stoppable[] = []
  const databases: Stoppable[] = []
  let settings: StackSettings | undefined
  let watchdog: Watchdog | undefined
  let complete = false
  const failed = Promise.withResolvers<never>()

  return { ready: start(), failed: failed.promise, stop }

  async function start(): Promise<string> {
    const data = prepareDataFolder()
    settings = readStackSettings(args, data)
    guardDataFolder(data)
    await waitForWatchdog(data)
    const procfile = parseProcfile(readFileSync(join(root, 'Procfile'), 'utf8'))
    const plan = await planProcesses(procfile.processes, settings, report)
    await guardCluster(process.env)
    watchdog = openWatchdog(data, settings)

    // The service does not need the client, so a failed build is only reported.
    const client = buildCli().catch((error: Error) =>
      report(`The client could not be built: ${error.message}`),
    )
    const environment = childEnvironment(settings, await startServices(data, settings, watchdog))
    const printerOf = openOutput(['release', ...plan.map(({ name }) => name)], settings.production)
    if (procfile.release !== undefined) {
      const release = { command: procfile.release, environment, print: printerOf('release') }
      await runApplication('release', release, watchdog)
    }
    for (const { name, kind, command, ports } of plan) {
      const processEnvironment = { ...environment, ...keyEnvironment(kind, data), ...ports }
      const application = { command, environment: processEnvironment, print: printerOf(name) }
      const run = () => startApplication(application, watchdog!)
      applications.push(await keepRunning(name, run, report, failed.reject))
    }
    complete = true

    await client
    const api = plan.find(({ kind }) => kind === 'api')
    if (api === undefined) return 'no address (the Procfile contains no api)'
    await waitUntilReady(settings.internalHost, api.ports.INTERNAL_PORT, report)
    return `http://localhost:${api.ports.PORT}`
  }

  /** Starts PostgreSQL and Redis, and finds bubblewrap. Skips any that are already configured. */
  async function startServices(data: string, given: StackSettings, guard: Watchdog): Promise<FoundServices> {
    const socketDir = socketFolder(data, guard)
    const place = (name: string) => ({
      directory: join(data, name),
      socketDir,
      log: join(data, `${name}.log`),
    })
    const keep = async (service: Service) => {
      databases.push(await keepRunning(service.name, () => startService(service, guard), report))
    }
    const [bwrap] = await Promise.all([
      given.driver === 'local' && given.bwrap === undefined ? findBubblewrap(report) : given.bwrap,
      given.databaseUrl === undefined && preparePostgres(place('postgres'), guard).then(keep),
      given.redisUrl === undefined && prepareRedis(place('redis'), report).then(keep),
    ])
    return {
      databaseUrl: given.databaseUrl ?? postgresUrl(socketDir),
      redisUrl: given.redisUrl ?? redisUrl(socketDir),
      bwrap,
    }
  }

  async function stop() {
    await Promise.all(applications.map((application) => application.stop()))
    if (settings?.driver === 'local' && watchdog !== undefined)
      await destroyAllSandboxes(settings.localDirectory)
    await Promise.all(databases.map((database) => database.stop()))
    // After an incomplete start, the watchdog must still stop processes.
    if (complete) watchdog?.dismiss()
  }
}

const reportAfterMs = 20_000

/** Waits until /readyz returns 200. If this takes longer than 20 s, reports the reason once. */
async function waitUntilReady(host: string, port: string, report: (line: string) => void) {
  const address = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host
  const url = `http://${address.includes(':') ? `[${address}]` : address}:${port}/readyz`
  const started = performance.now()
  for (let isReported = false; ; ) {
    const problem = await findProblem(url)
    if (problem === undefined) return
    if (!isReported && performance.now() - started > reportAfterMs) {
      report(`Sandlot is not ready yet: ${problem}`)
      isReported = true
    }
    await sleep(50)
  }
}

async function findProblem(url: string): Promise<string | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(5000) })
    return response.ok ? undefined : `${url} returns ${response.status} ${await response.text()}`
  } catch (error) {
    const { message, cause } = error as Error
    return `${url} is not responding (${cause instanceof Error ? cause.message : message})`
  }
}
