/** Starts the databases and the Procfile's processes, and stops them in reverse order. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { destroyAllSandboxes } from '../../workers/drivers/local/destroy-all.ts'
import { buildCli } from '../build-cli.mjs'
import { root } from '../root.mjs'
import { runApplication, startApplication } from './application.ts'
import { guardCluster } from './cluster.ts'
import { guardDataFolder, openWatchdog, prepareDataFolder, waitForWatchdog } from './data-folder.ts'
import { startDatabases } from './databases.ts'
import { keepRunning, type Stoppable } from './keep-running.ts'
import { openOutput } from './output.ts'
import { planProcesses } from './plan.ts'
import { parseProcfile } from './procfile.ts'
import { waitUntilReady } from './readiness.ts'
import { childEnvironment, keyEnvironment, readStackSettings, type StackSettings } from './stack-settings.ts'
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
    const urls = await startDatabases(data, settings, watchdog, databases, report)
    const environment = childEnvironment(settings, urls)
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

  async function stop() {
    await Promise.all(applications.map((application) => application.stop()))
    if (settings?.driver === 'local' && watchdog !== undefined)
      await destroyAllSandboxes(settings.localDirectory)
    await Promise.all(databases.map((database) => database.stop()))
    // After an incomplete start, the watchdog must still stop processes.
    if (complete) watchdog?.dismiss()
  }
}
