/**
 * `npm run chaos`: hours of faults for a night. Runs the suite of the soak with other options, so that
 * services, watchdog and clean-up are those of the tests.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runOnNode } from '../../scripts/project-node.mjs'
import { root } from '../../scripts/root.mjs'
import { optionsVariable, readOptions, usage } from './options.ts'
import { tableOf } from './report.ts'

const marks = ['<!-- chaos: the largest run -->', '<!-- chaos: end -->'] as const

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
        // JSON knows no infinity.
        [optionsVariable]: JSON.stringify({ ...options, json: file }, (_, value) =>
          value === Number.POSITIVE_INFINITY ? 1e9 : value,
        ),
      },
    )
    if (!existsSync(file)) throw new Error('The run ended without a report.')
    const text = readFileSync(file, 'utf8')
    if (json) writeFileSync(json, text)
    if (report) putInto(report, tableOf(JSON.parse(text)))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
} catch (error) {
  console.error(`${(error as Error).message}\n\n${usage}`)
  process.exitCode ||= 2
}

function putInto(path: string, table: string): void {
  const text = readFileSync(path, 'utf8')
  const [from, to] = marks.map((mark) => text.indexOf(mark)) as [number, number]
  if (from < 0 || to < from) throw new Error(`${path} has no line ${marks[0]} before ${marks[1]}.`)
  writeFileSync(path, `${text.slice(0, from + marks[0].length)}\n${table}\n${text.slice(to)}`)
}
