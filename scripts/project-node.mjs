/**
 * The Node that the project runs on: its own from node_modules where there is one for this
 * machine, else the one that runs now when it is new enough. Plain JavaScript for Node 20.
 */
import { spawn, spawnSync } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { watchParent } from './parent.mjs'
import { root } from './root.mjs'

/** Runs TypeScript as it is, and knows `import.meta.main`. */
const needed = [24, 2]

/**
 * Where the project's own Node lies once it is installed; one that cannot start here (another
 * C library, say) does not count.
 * @returns {string | undefined}
 */
export function ownNode() {
  const path = join(root, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node')
  if (isRunning(path)) return path
  if (!works.has(path)) works.set(path, spawnSync(path, ['--version'], { stdio: 'ignore' }).status === 0)
  return works.get(path) ? path : undefined
}

const works = new Map()

/**
 * The path of the Node to run the project with.
 * @throws when there is none
 */
export function projectNode() {
  const own = ownNode()
  if (own !== undefined) return own
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > needed[0] || (major === needed[0] && minor >= needed[1])) return process.execPath
  throw new Error(
    `Sandlot needs Node ${needed.join('.')} or newer; this is ${process.version}, and npm has no Node ` +
      `for ${process.platform} on ${process.arch}. Install a newer Node and type the same again.`,
  )
}

/**
 * Goes on with a script of the project on the project's Node, in this process when it already
 * is that Node.
 * @param {string} script relative to the project's root
 * @param {string[]} args
 */
export async function continueOnProjectNode(script, args) {
  const node = projectNode()
  const path = join(root, script)
  if (isRunning(node)) {
    process.argv = [process.argv[0], path, ...args]
    await import(pathToFileURL(path).href)
    return
  }
  process.exitCode = await runOnNode(node, [path, ...args])
}

/**
 * Runs a script on a Node with our terminal, passes signals on and waits for it.
 * @param {string} node
 * @param {string[]} args
 * @param {Record<string, string | undefined>} [environment]
 * @param {number | 'inherit'} [output] an open file for what it prints, in place of the terminal
 * @returns {Promise<number>} its exit code; 128 + n when signal n ended it
 */
export function runOnNode(node, args, environment = process.env, output = 'inherit') {
  return new Promise((resolve, reject) => {
    const child = spawn(node, args, {
      stdio: ['inherit', output, output],
      // Nothing can pass a SIGKILL on: the script watches for our end itself.
      env: { ...environment, SANDLOT_WATCH_PARENT: String(process.pid) },
    })
    watchParent(() => child.kill('SIGTERM'))
    const pass = (signal) => child.kill(signal)
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
    for (const signal of signals) process.on(signal, pass)
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      for (const name of signals) process.off(name, pass)
      resolve(code ?? 128 + constants.signals[signal])
    })
  })
}

function isRunning(path) {
  try {
    return realpathSync(path) === realpathSync(process.execPath)
  } catch {
    return false
  }
}
