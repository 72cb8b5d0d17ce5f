/**
 * The page of the benchmark: bench/RESULTS.md and its chart, drawn from bench/results.json. A run of
 * some parts replaces those and leaves the others as they were, each with its own date and machine.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { drawChart, type Panel, shown } from './chart.ts'
import { machine, percentile, table } from './figures.ts'
import type { Findings, Part } from './part.ts'

interface Result extends Omit<Findings, 'rows'> {
  title: string
  date: string
  machine: string
  rows: {
    what: string
    ours: boolean
    unit: string
    median: number
    p90: number
    p99: number
    runs: number
  }[]
}
type Results = Record<string, Result>

const at = (name: string) => join(import.meta.dirname, name)
const [data, page, chart] = [at('results.json'), at('RESULTS.md'), at('results.svg')]

export function writeDown(name: string, { title }: Part, { rows, ...findings }: Findings, order: string[]) {
  const results: Results = existsSync(data) ? JSON.parse(readFileSync(data, 'utf8')) : {}
  results[name] = {
    title,
    date: new Date().toISOString().slice(0, 10),
    machine: `${machine()}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB`,
    rows: rows.map(({ values, ...row }) => ({
      ...row,
      median: round(percentile(values, 0.5)),
      p90: round(percentile(values, 0.9)),
      p99: round(percentile(values, 0.99)),
      runs: values.length,
    })),
    ...findings,
  }
  const ordered = Object.fromEntries(order.flatMap((key) => (results[key] ? [[key, results[key]]] : [])))
  writeFileSync(data, `${JSON.stringify(ordered, null, 2)}\n`)
  writeFileSync(chart, drawChart(Object.values(ordered).flatMap(panelsOf)))
  writeFileSync(page, draw(Object.values(ordered)))
  return describe(ordered[name]!)
}

const round = (value: number) => Number(value.toPrecision(5))

const panelsOf = ({ title, rows }: Result): Panel[] =>
  [...new Set(rows.map(({ unit }) => unit))].map((unit) => ({
    title,
    unit,
    bars: rows
      .filter((row) => row.unit === unit)
      .map(({ what, ours, median, p90, p99 }) => ({ label: what, ours, median, p90, p99 })),
  }))

const draw = (results: Result[]): string =>
  `# What Sandlot costs, and how fast it is

Written by \`npm run bench\`, which says how each figure came about; \`npm run bench -- create exec\` measures
some parts again and leaves the others. Everything runs on one machine, the client and the databases too, and
what is compared was measured by turns in one run. Blue is Sandlot, grey what one would do instead; a bar
is the median, the line ends at the 99th percentile and is marked at the 90th. With fewer than 100 runs
the 99th percentile is the worst.

![medians, 90th and 99th percentiles](results.svg)

${results.map(describe).join('\n')}`

function describe({ title, date, machine, rows, verdicts = [], notes, details }: Result): string {
  const figures = rows.map(({ what, unit, median, p90, p99, runs }) => [
    what,
    ...[median, p90, p99].map(shown),
    unit,
    String(runs),
  ])
  return [
    `## ${title}`,
    table(['', 'median', '90th percentile', '99th percentile', 'unit', 'runs'], figures),
    ...(details ? [details] : []),
    ...(verdicts.length > 0
      ? [verdicts.map(({ what, met }) => `- ${what} (${met ? 'met' : '**not met**'})`).join('\n')]
      : []),
    notes.join(' '),
    `${date}, ${machine}.\n`,
  ].join('\n\n')
}
