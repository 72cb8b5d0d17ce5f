/** Formats a report for terminals, and as a table for docs/reliability.md. */
import type { Report } from './run.ts'

export function describeReport(report: Report): string {
  const { faults, operations, commands, sandboxes, sizes, wrong } = report
  const lines = [
    `${faults.total} faults in ${report.seconds} s on the ${report.driver} driver, seed ${report.seed}: ${wrong.total} wrong`,
    ...section('faults', faults.byName),
    'operations',
    ...Object.entries(operations)
      .sort()
      .map(([name, outcomes]) => `  ${name}: ${formatCounts(outcomes)}`),
    `sandboxes: ${sandboxes.sandboxes} (${formatCounts(sandboxes.ends)}), billed ${(sandboxes.billedMs / 1000).toFixed(3)} s`,
    `commands: ${commands.commands}, ${commands.checked} checked in the sandbox, ${commands.ran} of them ran; ${commands.forgotten} results were reported and then lost in a crash of PostgreSQL`,
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
    `Repeat these faults: npm run chaos -- --driver ${report.driver} --seed ${report.seed} --faults ${faults.total}`,
  ]
  return lines.join('\n')
}

const section = (title: string, counts: Record<string, number>): string[] =>
  Object.keys(counts).length === 0
    ? []
    : [title, ...byCount(counts).map(([name, count]) => `  ${String(count).padStart(6)}  ${name}`)]

const byCount = (counts: Record<string, number>) => Object.entries(counts).sort(([, a], [, b]) => b - a)

const formatCounts = (counts: Record<string, number>): string =>
  byCount(counts)
    .map(([name, count]) => `${count} ${name}`)
    .join(', ')

export function tableOf(report: Report): string {
  const { faults, operations, commands, sandboxes, sizes, wrong } = report
  const requests = Object.entries(operations).filter(([name]) => !name.startsWith('result of'))
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
    ['requests', `${all}, ${ok} of them successful`],
    ['sandboxes', `${sandboxes.sandboxes} (${formatCounts(sandboxes.ends)})`],
    [
      'commands',
      `${commands.commands}; for ${commands.checked} of them, the sandbox was checked for whether they ran`,
    ],
    [
      'reported, and then lost in a crash of PostgreSQL (not guaranteed, see above)',
      String(commands.forgotten),
    ],
    ['billed', `${(sandboxes.billedMs / 1000).toFixed(3)} s, each interval equal to its row`],
    ['memory of the processes, MiB', grown('memoryMiB')],
    ['open files of the processes', grown('descriptors')],
    ['**wrong**', `**${wrong.total}**${wrong.total > 0 ? `: ${formatCounts(wrong.byWhat)}` : ''}`],
  ]
  const table = (head: [string, string], body: [string, string][]) =>
    [head, ['---', '---'] as [string, string], ...body].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
  const perFault = byCount(faults.byName).map(([name, count]): [string, string] => [name, String(count)])
  return `${table(['what', 'how much'], rows)}\n\n${table(['fault', 'times'], perFault)}`
}
