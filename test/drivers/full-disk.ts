/** Opens a local driver on a full file system, and prints the errors. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { LocalDriver } from '../../workers/drivers/local/index.ts'
import { localSettings } from './local-settings.ts'
import { newSandboxId, ofSandbox } from './requests.ts'

const [directory = '', bwrap] = process.argv.slice(2)
execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', directory])
const settings = localSettings({ directory, bwrap })
const driver = new LocalDriver({ settings, installationId: 'tests', log: pino({ level: 'silent' }) })
const request = { ...ofSandbox(newSandboxId()), image: 'any', deadlineSeconds: 60 }
const outcome = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error: Error) => `${error.name}: ${error.message}`,
  )
await driver.ping()
try {
  writeFileSync(join(directory, 'big'), Buffer.alloc(1_000_000))
} catch {
  // The file system is full.
}
console.log(JSON.stringify([await outcome(driver.ping()), await outcome(driver.create(request))]))
await driver.close()
