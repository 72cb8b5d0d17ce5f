/**
 * Implements `npm run chaos`, which runs the soak suite with other options and therefore uses the services
 * and cleanup of the tests.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runOnNode } from '../../scripts/project-node.mjs'
import { root } from '../../scripts/root.mjs'
import { optionsVariable, readOptions, usage } from './options.ts'
import { tableOf } from './report.ts'

const markers = ['<!-- chaos: the largest run -->', '<!-- chaos: end -->'] as const

try {
  const { report, json, ...options } = readOptions(process.argv.slice(2))
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-chaos-'))
  const file = join(folder, 'report.json')
  try {
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
    process.exitCode = await runOnNode(
      process.execPath,
      [vitest, 'run', '--root', root, '--config', 'vitest.soak.config.ts', 'test/chaos/chaos.soak.ts'],
      {
        ...process.env,
        // JSON cannot represent Infinity.
        [optionsVariable]: JSON.stringify({ ...options, json: file }, (_, value) =>
          value === Number.POSITIVE_INFINITY ? 1e9 : value,
        ),
      },
    )
    if (!existsSync(file)) throw new Error('The run ended without a report.')
    const text = readFileSync(file, 'utf8')
    if (json) writeFileSync(json, text)
    if (report) insertTable(report, tableOf(JSON.parse(text)))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
} catch (error) {
  console.error(`${(error as Error).message}\n\n${usage}`)
  process.exitCode ||= 2
}

function insertTable(path: string, table: string): void {
  const text = readFileSync(path, 'utf8')
  const [from, to] = markers.map((marker) => text.indexOf(marker)) as [number, number]
  if (from < 0 || to < from) throw new Error(`${path} has no line ${markers[0]} before ${markers[1]}.`)
  writeFileSync(path, `${text.slice(0, from + markers[0].length)}\n${table}\n${text.slice(to)}`)
}
