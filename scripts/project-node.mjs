/** Finds Node for the project. Written in plain JavaScript, so that it runs on Node 20. */
import { spawn, spawnSync } from 'node:child_process'
import { constants } from 'node:os'
import { join } from 'node:path'
import { watchParent } from './parent.mjs'
import { root } from './root.mjs'

/** The oldest Node version that runs TypeScript and has `import.meta.main`, as [major, minor]. */
const needed = [24, 2]

/** @type {string | false | undefined} path, or false if the bundled Node cannot run on this system */
let bundledNode

/**
 * Returns the path of the Node in node_modules, or undefined if that Node cannot run on this system, for
 * example because the system uses musl.
 * @returns {string | undefined}
 */
export function findBundledNode() {
  const path = join(root, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node')
  bundledNode ??= spawnSync(path, ['--version'], { stdio: 'ignore' }).status === 0 && path
  return bundledNode || undefined
}

/**
 * Returns the path of the Node in node_modules or, if that Node cannot run on this system, of the current
 * Node.
 * @throws {Error} a user-facing error if the current Node is too old
 */
export function projectNode() {
  const found = findBundledNode()
  if (found !== undefined) return found
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > needed[0] || (major === needed[0] && minor >= needed[1])) return process.execPath
  throw new Error(
    `Sandlot needs Node ${needed.join('.')} or newer, but this is ${process.version}, and npm has no Node package ` +
      `for ${process.platform} on ${process.arch}. Install a newer Node and run this command again.`,
  )
}

/**
 * Runs a script with Node in this terminal, forwards signals, and waits for the script to exit.
 * @param {string} node
 * @param {string[]} args
 * @param {Record<string, string | undefined>} [environment]
 * @param {number | 'inherit'} [output] a file descriptor
 * @returns {Promise<number>} the exit code, or 128 + n if signal n killed the process
 */
export function runOnNode(node, args, environment = process.env, output = 'inherit') {
  return new Promise((resolve, reject) => {
    const child = spawn(node, args, {
      stdio: ['inherit', output, output],
      // SIGKILL cannot be forwarded, so the script watches this process.
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
