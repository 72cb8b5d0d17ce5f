/**
 * Waits for a line on stdin, creates a sandbox, prints its uid, and keeps running. Tests may kill this
 * process.
 * Usage: node local-worker.ts DIRECTORY BWRAP SANDBOX-ID [SCRIPT]
 */
import { once } from 'node:events'
import { pino } from 'pino'
import { podName } from '../../shared/data/ids.ts'
import { LocalDriver } from '../../workers/drivers/local/index.ts'
import { localSettings } from './local-settings.ts'
import { run, shell, untilReady } from './processes.ts'
import { ofSandbox } from './requests.ts'

const [directory, bwrap, sandboxId, script] = process.argv.slice(2)
const driver = new LocalDriver({
  settings: localSettings({ directory: directory!, bwrap }),
  installationId: 'tests',
  log: pino({ level: 'silent' }),
})
// Starts the launcher, so that tests can kill this process during any step of the creation that they test.
const first = await driver.create({ ...ofSandbox(), image: 'any', deadlineSeconds: 120 })
await driver.delete(first)
process.stdout.write('waiting\n')
await once(process.stdin, 'data')
const name = podName(sandboxId!)
const pod = await driver.create({ name, sandboxId: sandboxId!, image: 'any', deadlineSeconds: 120 })
process.stdout.write(`${pod.uid}\n`)
if (script) {
  await untilReady(driver, pod)
  process.stdout.write(`${JSON.stringify(await run(driver, pod, shell(script)))}\n`)
}
