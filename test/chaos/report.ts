/** A run in words: for a terminal, and as a table for docs/reliability.md. */
import type { Report } from './run.ts'

export function describeReport(report: Report): string {
  const { faults, operations, commands, sandboxes, sizes, wrong } = report
  const lines = [
    `${faults.total} faults in ${report.seconds} s on the ${report.driver} driver, seed ${report.seed}: ${wrong.total} wrong`,
    ...section('faults', faults.byName),
    'operations',
    ...Object.entries(operations)
      .sort()
      .map(([name, outcomes]) => `  ${name}: ${inOne(outcomes)}`),
    `sandboxes: ${sandboxes.sandboxes} (${inOne(sandboxes.ends)}), billed ${(sandboxes.billedMs / 1000).toFixed(3)} s`,
    `commands: ${commands.commands}, of ${commands.lookedInto} was looked whether they ran, ${commands.ran} did; ${commands.forgotten} ends were told whose row a crash of PostgreSQL took along`,
    ...sizes.map(
      ({ name, memoryMiB, descriptors }) =>
        `${name}: ${memoryMiB.join(' → ')} MiB, ${descriptors.join(' → ')} open files`,
    ),
    ...section('wrong', wrong.byWhat),
    ...wrong.shown.flatMap(({ what, evidence, lines: logged }) => [
      `✗ ${what}`,
      `    ${JSON.stringify(evidence)}`,
      ...logged.map((line) => `      ${JSON.stringify(line)}`),
    ]),
    `The same faults again: npm run chaos -- --driver ${report.driver} --seed ${report.seed} --faults ${faults.total}`,
  ]
  return lines.join('\n')
}

const section = (title: string, counts: Record<string, number>): string[] =>
  Object.keys(counts).length === 0
    ? []
    : [title, ...byCount(counts).map(([name, count]) => `  ${String(count).padStart(6)}  ${name}`)]

const byCount = (counts: Record<string, number>) => Object.entries(counts).sort(([, a], [, b]) => b - a)

const inOne = (counts: Record<string, number>): string =>
  byCount(counts)
    .map(([name, count]) => `${count} ${name}`)
    .join(', ')

/** As Markdown. */
export function tableOf(report: Report): string {
  const { faults, operations, commands, sandboxes, sizes, wrong } = report
  const requests = Object.entries(operations).filter(([name]) => !name.startsWith('told of'))
  const total = (outcomes: Record<string, number>) => Object.values(outcomes).reduce((a, b) => a + b, 0)
  const ok = requests.reduce((sum, [, outcomes]) => sum + (outcomes.ok ?? 0), 0)
  const all = requests.reduce((sum, [, outcomes]) => sum + total(outcomes), 0)
  const grown = (kind: 'memoryMiB' | 'descriptors') => sizes.map((size) => size[kind].join(' → ')).join(', ')
  const rows: [string, string][] = [
    [
      'run',
      `${report.startedAt.slice(0, 10)}, ${report.driver} driver, seed ${report.seed}, ${report.seconds} s`,
    ],
    ['faults', String(faults.total)],
    ['requests', `${all}, of which ${ok} went well`],
    ['sandboxes', `${sandboxes.sandboxes} (${inOne(sandboxes.ends)})`],
    [
      'commands',
      `${commands.commands}; of ${commands.lookedInto} it was looked up in the sandbox whether they ran`,
    ],
    [
      'told, and then taken along by a crash of PostgreSQL (not promised, see above)',
      String(commands.forgotten),
    ],
    ['billed', `${(sandboxes.billedMs / 1000).toFixed(3)} s, each interval as its rows say`],
    ['memory of the processes, MiB', grown('memoryMiB')],
    ['open files of the processes', grown('descriptors')],
    ['**wrong**', `**${wrong.total}**${wrong.total > 0 ? `: ${inOne(wrong.byWhat)}` : ''}`],
  ]
  const table = (head: [string, string], body: [string, string][]) =>
    [head, ['---', '---'] as [string, string], ...body].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
  const perFault = byCount(faults.byName).map(([name, count]): [string, string] => [name, String(count)])
  return `${table(['what', 'how much'], rows)}\n\n${table(['fault', 'times'], perFault)}`
}
