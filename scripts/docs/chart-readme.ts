/** Generates the chart's README from the values, their defaults and their comments in helm-docs format. */
import { code, table } from './table.ts'

interface Value {
  key: string
  value: string
  description: string
}

/** @param values the contents of deploy/chart/values.yaml */
export const chartReadme = (values: string): string =>
  `# sandlot

A control plane for short-lived, isolated sandboxes. [Hosting](../../docs/hosting.md#installing-with-the-chart)
describes how to install it, and [UPGRADING.md](UPGRADING.md) how to upgrade it.

\`npm run docs\` generates this page from \`values.yaml\`.

## Values

${table(
  ['Key', 'Type', 'Default', 'Description'],
  readValues(values).map(({ key, value, description }) => [key, typeOf(value), code(value), description]),
)}
`

/**
 * Reads the values and their comments. A comment above a group of values belongs to the group's first row.
 */
function readValues(text: string): Value[] {
  const all: Value[] = []
  let above: string[] = []
  let parents: { indent: number; name: string }[] = []
  for (const line of text.split('\n')) {
    const [, indent = '', name, rest = ''] = /^( *)([\w-]+):(.*)$/.exec(line) ?? []
    const comment = /^ *# ?(.*)$/.exec(line)?.[1]
    if (comment !== undefined) above.push(comment)
    if (line.trim() === '') above = []
    if (name === undefined) continue
    parents = [...parents.filter((each) => each.indent < indent.length), { indent: indent.length, name }]
    const [, flow = '', beside = ''] = /^\s*(.*?)(?:\s+# (.*))?$/.exec(rest) ?? []
    if (flow === '') continue
    const key = parents.map((each) => each.name).join('.')
    all.push({
      key,
      value: flow,
      description: [...above, beside].join(' ').trim(),
    })
    above = []
  }
  return all
}

function typeOf(value: string): string {
  if (value.startsWith('[')) return 'list'
  if (value.startsWith('{')) return 'object'
  if (/^\d+$/.test(value)) return 'int'
  return /^(true|false)$/.test(value) ? 'bool' : 'string'
}
