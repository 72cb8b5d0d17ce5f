/**
 * `npm run docs`: generates sections of docs/, docs/baseline.txt, the client's route table and parts of the
 * Helm chart, and with `--pictures` the screenshots. test/docs.test.ts fails if generated text is outdated.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { baseline } from './docs/baseline.ts'
import { chartReadme, withSettings } from './docs/chart.ts'
import { commands, exitCodes, globalOptions, localSettings } from './docs/commands.ts'
import { errorCodes, routes, tools, withRoutes } from './docs/contract.ts'
import { settings } from './docs/settings.ts'
import { root } from './root.mjs'

/** Generators of sections in docs/*.md, keyed by the name in the comment that starts the section. */
const parts: Record<string, () => string | Promise<string>> = {
  settings,
  commands,
  'global-options': globalOptions,
  'local-settings': localSettings,
  'exit-codes': exitCodes,
  routes,
  'error-codes': errorCodes,
  tools,
}

const generatedPart = /(<!-- made by `npm run docs`: (\S+) -->\n).*?(<!-- end -->)/gs

/** Returns the contents of all files with generated text, keyed by path relative to the project root. */
export async function makePages(): Promise<Map<string, string>> {
  const made = Object.fromEntries(
    await Promise.all(Object.entries(parts).map(async ([name, make]) => [name, await make()] as const)),
  )
  const used = new Set<string>()
  const fill = (_: string, before: string, name: string, after: string) => {
    if (made[name] === undefined) throw new Error(`No generator exists for the section ${name} in docs/.`)
    used.add(name)
    return `${before}\n${made[name]}\n\n${after}`
  }
  const paths = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))
  const pages = paths.map((name): [string, string] => [`docs/${name}`, readPage(`docs/${name}`)])
  const filled = new Map(pages.map(([path, page]) => [path, page.replace(generatedPart, fill)]))
  const missing = Object.keys(parts).filter((name) => !used.has(name))
  if (missing.length > 0) throw new Error(`No page contains the generated sections: ${missing.join(', ')}.`)
  const [ofClient, ofChart] = ['shared/contract/routes.ts', 'deploy/chart/values.schema.json']
  return filled
    .set(ofClient, withRoutes(readPage(ofClient)))
    .set(ofChart, withSettings(readPage(ofChart)))
    .set('deploy/chart/README.md', chartReadme(readPage('deploy/chart/values.yaml')))
    .set('docs/baseline.txt', await baseline())
}

export const readPage = (path: string): string => readFileSync(join(root, path), 'utf8')

if (import.meta.main) {
  for (const [path, page] of await makePages()) {
    if (page === readPage(path)) continue
    writeFileSync(join(root, path), page)
    console.log(`Updated ${path}.`)
  }
  if (process.argv.includes('--pictures')) await drawPictures()
}

async function drawPictures() {
  // Imported on demand, because a test imports this file.
  const { buildClient, runVitest } = await import('./vitest.mjs')
  await buildClient()
  process.env.SANDLOT_SCREENSHOTS = 'docs'
  process.exitCode = (await runVitest(['test/cli/screenshots.test.ts'])).code
}
