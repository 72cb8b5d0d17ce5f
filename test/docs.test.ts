import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { type Branch, commands } from '../cli/commands/index.ts'
import { makePages, readPage } from '../scripts/docs.ts'
import { root } from '../scripts/root.mjs'

const pages = ['', 'docs/', 'bench/', 'deploy/chart/'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}${name}`),
)

test('the generated tables of settings, commands, routes, error codes and MCP tools are up to date', async () => {
  for (const [path, page] of await makePages()) expect(readPage(path), path).toBe(page)
})

/** GitHub's anchor for a heading. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

const anchorsOf = (page: string) =>
  [...page.replace(/^```.*?^```/gms, '').matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading!))

test.each(pages)('all links on the page %s are valid', (path) => {
  const links = [...readPage(path).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!)
  const broken = links
    .filter((link) => !/^https?:/.test(link))
    .filter((link) => {
      const [file = '', anchor] = link.split('#')
      const target = file === '' ? path : join(dirname(path), file)
      if (!existsSync(join(root, target))) return true
      return anchor !== undefined && !anchorsOf(readPage(target)).includes(anchor)
    })
  expect(broken).toEqual([])
})

test.each(pages)('all files and folders named on the page %s exist', (path) => {
  const named = readPage(path).matchAll(
    /`((?:api|bench|cli|deploy|migrations|scripts|shared|test|workers)\/[\w./-]*)`/g,
  )
  const missing = [...named]
    .map(([, name]) => name!)
    .filter((name) => !name.includes('/dist') && !existsSync(join(root, name)))
  expect(missing).toEqual([])
})

test('all npm scripts named on the pages exist', () => {
  const { scripts } = JSON.parse(readPage('package.json'))
  const named = pages.flatMap((path) =>
    [...readPage(path).matchAll(/npm run ([\w-]+)/g)].map(([, name]) => name),
  )
  expect(named.length).toBeGreaterThan(5)
  expect(named.filter((name) => !(name! in scripts))).toEqual([])
})

test.each(pages)('all client commands named on the page %s exist', (path) => {
  const inCode = [...readPage(path).matchAll(/```.*?```|`[^`]+`/gs)].map(([code]) =>
    // In helm and kubectl commands, `sandlot` is a release name.
    code.replace(/^`?(helm|kubectl) .*$/gm, ''),
  )
  const named = inCode.flatMap((code) => [...code.matchAll(/\bsandlot ([a-z-]+)(?: ([a-z-]+))?/g)])
  const aliases = Object.values(commands).flatMap((entry) => ('load' in entry && entry.aliases) || [])
  const below = (entry: Branch[string] | undefined) =>
    entry && 'commands' in entry ? Object.keys(entry.commands) : undefined
  const missing = named.filter(([, name = '', sub]) => {
    if (name === 'help' || name.startsWith('-')) return false
    if (!(name in commands)) return !aliases.includes(name)
    return sub !== undefined && below(commands[name])?.includes(sub) === false
  })
  expect(missing.map(([words]) => words)).toEqual([])
})

test('.gitignore lists every key file created by the commands on the pages', () => {
  const files = pages.flatMap((path) =>
    [...readPage(path).matchAll(/make-keys > (\S+)/g)].map(([, name]) => name!),
  )
  expect(files).toContain('keys.env')
  const ignored = readPage('.gitignore').split('\n')
  expect(files.filter((name) => !ignored.includes(name))).toEqual([])
})
