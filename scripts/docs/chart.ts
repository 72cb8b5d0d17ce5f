/** Generates the Helm chart's README, and the list of settings in the schema of the chart's values. */
import * as z from 'zod'
import { Environment } from '../../shared/platform/settings-schema.ts'
import { code, table } from './table.ts'

interface Value {
  key: string
  value: string
  description: string
}

/** @param values the contents of deploy/chart/values.yaml, with comments in helm-docs format */
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
 * Returns the chart's values with their descriptions. A comment above a group of values describes the group's
 * first value.
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
    all.push({ key, value: flow, description: [...above, beside].join(' ').trim() })
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

/** Settings omitted from the values schema, because the chart sets them or they have no effect in a pod. */
const withoutEffect = [
  ...['PORT', 'HOST', 'ALLOWED_HOSTS', 'TRUSTED_PROXIES', 'NODE_ENV', 'KUBECONFIG'],
  ...['INTERNAL_PORT', 'INTERNAL_HOST', 'RPC_PORT', 'DRAIN_SECONDS', 'SHUTDOWN_DELAY_SECONDS'],
  ...['DATABASE_URL', 'REDIS_URL', 'JWT_SECRET', 'SECRETS_KEY', 'SECRETS_PUBLIC_KEY', 'RPC_KEY'],
]
const ofSandboxes =
  /^SANDBOX_(DRIVER|NAMESPACE|RUNTIME_CLASS|HOST_USERS|NODE_SELECTOR|TOLERATIONS|AFFINITY|PRIORITY_CLASS|IMAGE_PULL_SECRETS|DNS|NETWORK_POLICIES|LOCAL_\w+|IMAGES?|EGRESS|PIDS|INODES|(CPU|MEMORY|DISK)(_REQUEST)?)$/

/**
 * Returns the chart's values schema with up-to-date settings.
 * @param schema the contents of deploy/chart/values.schema.json
 */
export function withSettings(schema: string): string {
  const { properties = {} } = z.toJSONSchema(Environment, { io: 'input' })
  const lines = Object.entries(properties as Record<string, { enum?: string[] }>)
    .filter(([name]) => !withoutEffect.includes(name) && !ofSandboxes.test(name))
    .map(([name, { enum: choices }]) => {
      const kind = choices ? `"enum": ["${choices.join('", "')}"]` : '"$ref": "#/definitions/setting"'
      return `        "${name}": { ${kind} }`
    })
  return schema.replace(/(?<="settings": \{[^}]*"properties": \{\n).*?(?=\n {6}\})/s, lines.join(',\n'))
}
