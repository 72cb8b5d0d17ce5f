/**
 * Finds the Node that the project runs on: the one in node_modules if it starts on this machine, else the current one
 * if it is new enough. Plain JavaScript for Node 20.
 */
import { spawn, spawnSync } from 'node:child_process'
import { constants } from 'node:os'
import { join } from 'node:path'
import { watchParent } from './parent.mjs'
import { root } from './root.mjs'

/** Runs TypeScript without a build, and has `import.meta.main`. */
const needed = [24, 2]

/** @type {string | false | undefined} */
let own

/** @returns {string | undefined} the path of the Node in node_modules; undefined if it does not start, as with musl */
export function findBundledNode() {
  const path = join(root, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node')
  own ??= spawnSync(path, ['--version'], { stdio: 'ignore' }).status === 0 && path
  return own || undefined
}

/**
 * @returns the path of the Node to run the project with
 * @throws {Error} with a message for the terminal, when there is none
 */
export function projectNode() {
  const found = findBundledNode()
  if (found !== undefined) return found
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > needed[0] || (major === needed[0] && minor >= needed[1])) return process.execPath
  throw new Error(
    `Sandlot needs Node ${needed.join('.')} or newer; this is ${process.version}, and npm has no Node ` +
      `for ${process.platform} on ${process.arch}. Install a newer Node and run this command again.`,
  )
}

/**
 * Runs a script on a Node with our terminal, forwards signals and waits for it.
 * @param {string} node
 * @param {string[]} args
 * @param {Record<string, string | undefined>} [environment]
 * @param {number | 'inherit'} [output] an open file for the output, instead of the terminal
 * @returns {Promise<number>} its exit code; 128 + n if signal n ended it
 */
export function runOnNode(node, args, environment = process.env, output = 'inherit') {
  return new Promise((resolve, reject) => {
    const child = spawn(node, args, {
      stdio: ['inherit', output, output],
      // SIGKILL cannot be forwarded, so the script watches for our end itself.
      env: { ...environment, SANDLOT_WATCH_PARENT: String(process.pid) },
    })
    watchParent(() => child.kill('SIGTERM'))
    const forward = (signal) => child.kill(signal)
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
    for (const signal of signals) process.on(signal, forward)
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      for (const name of signals) process.off(name, forward)
      resolve(code ?? 128 + constants.signals[signal])
    })
  })
}
