import * as z from 'zod'
import { Environment } from '../../shared/platform/settings-schema.ts'

/** Settings left out of the schema, because the chart sets them itself or they have no effect in a pod. */
const others = [
  ...['PORT', 'HOST', 'ALLOWED_HOSTS', 'TRUSTED_PROXIES', 'NODE_ENV'],
  ...['INTERNAL_PORT', 'INTERNAL_HOST', 'RPC_PORT', 'DRAIN_SECONDS', 'SHUTDOWN_DELAY_SECONDS'],
  ...[
    'DATABASE_URL',
    'REDIS_URL',
    'JWT_SECRET',
    'SECRETS_KEY',
    'SECRETS_PUBLIC_KEY',
    'RPC_KEY',
    'KUBECONFIG',
  ],
]
const ofSandboxes =
  /^SANDBOX_(DRIVER|NAMESPACE|RUNTIME_CLASS|HOST_USERS|NODE_SELECTOR|TOLERATIONS|AFFINITY|PRIORITY_CLASS|IMAGE_PULL_SECRETS|DNS|NETWORK_POLICIES|LOCAL_\w+|IMAGES?|EGRESS|PIDS|INODES|(CPU|MEMORY|DISK)(_REQUEST)?)$/

/**
 * Replaces the list of settings in the chart's values schema.
 * @param schema the contents of deploy/chart/values.schema.json
 */
export function withSettings(schema: string): string {
  const values = JSON.parse(schema)
  const { properties = {} } = z.toJSONSchema(Environment, { io: 'input' })
  const kinds = Object.entries(properties as Record<string, { enum?: string[] }>)
    .filter(([name]) => !others.includes(name) && !ofSandboxes.test(name))
    .map(([name, { enum: choices }]) => [name, choices ? { enum: choices } : { type: ['string', 'number'] }])
  values.properties.settings.properties = Object.fromEntries(kinds)
  return `${JSON.stringify(values, undefined, 2)}\n`
}
