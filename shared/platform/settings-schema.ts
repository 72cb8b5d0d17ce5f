/**
 * Every setting of the service: name, type, default and description. The tables of docs/settings.md are generated from
 * it, and show `unset` instead of a default.
 */
import * as z from 'zod'
import { defaultSeconds } from './liveness-timeouts.ts'
import { poolEntry } from './settings-pools.ts'

const whole = z.coerce.number().int()
const port = whole.min(0).max(65535)
const perMinute = whole.min(1)
const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
)
/** `name`, `*.name` or an address, each with or without a port; or `*`. */
const host = z
  .string()
  .regex(
    /^(\*|(\*\.)?[\w.-]+(:\d+)?|\[[\da-f:.]+\](:\d+)?)$/i,
    'expected names such as sandlot.example.com, *.example.com or sandlot.example.com:8443, comma-separated',
  )
/** A Kubernetes quantity, such as `500m`, `1`, `512Mi`. */
const quantity = z
  .string()
  .regex(/^\d+(\.\d+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/, 'expected a quantity such as 500m, 1 or 512Mi')
const secrets = list.pipe(
  z
    .array(
      z.string().refine((text) => Buffer.byteLength(text) >= 32, 'every entry must have at least 32 bytes'),
    )
    .min(1),
)
const image = z.string().min(1)
/** A part of a pod's specification, as JSON. */
const podField = <Field extends z.ZodType>(field: Field, example: string) =>
  z
    .string()
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text)
      } catch {
        context.addIssue(`expected JSON such as ${example}`)
        return z.NEVER
      }
    })
    .pipe(field)
const toleration = z.strictObject({
  key: z.string().exactOptional(),
  operator: z.enum(['Equal', 'Exists']).exactOptional(),
  value: z.string().exactOptional(),
  effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).exactOptional(),
  tolerationSeconds: z.int().exactOptional(),
})
const affinity = z.strictObject({
  nodeAffinity: z.looseObject({}).optional(),
  podAffinity: z.looseObject({}).optional(),
  podAntiAffinity: z.looseObject({}).optional(),
})

const addresses = {
  PORT: port.default(8080).describe('The port of the API.'),
  HOST: z.string().default('127.0.0.1').describe('The address that the API listens on.'),
  ALLOWED_HOSTS: list
    .pipe(z.array(host))
    .default([])
    .describe(
      'The host names of the API, comma-separated: `sandlot.example.com` or `*.example.com`, with or without a port, or `*` for any. A request for another host gets 421. Localhost, loopback addresses and `HOST` are always allowed.',
    ),
  TRUSTED_PROXIES: list
    .default([])
    .describe(
      'Addresses and CIDR ranges of proxies, comma-separated. The API trusts `X-Forwarded-For` only from them.',
    ),
  INTERNAL_PORT: port.default(9090).describe('The port of health checks and metrics.'),
  // Far above INTERNAL_PORT, which `npm start` increments for each process.
  RPC_PORT: port
    .default(9443)
    .describe('The port of a worker for RPC from the API and from other workers, over TLS.'),
  INTERNAL_HOST: z
    .string()
    .default('127.0.0.1')
    .describe(
      'The address of these two ports. The API and all workers must be able to reach it on each worker.',
    ),
}

const databases = {
  DATABASE_URL: z
    .string()
    .min(1, 'is required: postgresql://user:password@host/database')
    .describe(
      'PostgreSQL 15 or later: `postgresql://user:password@host/database`. `npm start` runs its own.',
    ),
  REDIS_URL: z
    .string()
    .min(1, 'is required: redis://host:6379, or unix:///path/of/redis.sock')
    .describe(
      'Redis 7 or later with `maxmemory-policy noeviction`: `redis://…`, `rediss://…` or `unix:///path`. `npm start` runs its own.',
    ),
}

const keys = {
  JWT_SECRET: secrets.optional().meta({
    unset: '**required by the API**',
    description: 'Signs session tokens. Only the API has it.',
  }),
  SECRETS_KEY: secrets.optional().meta({
    unset: '**required by workers**',
    description: 'Opens secrets and environments. Only workers should have it.',
  }),
  SECRETS_PUBLIC_KEY: z
    .string()
    .regex(/^[\w-]{43}$/, 'expected the output of `npm run admin -- public-key`')
    .optional()
    .meta({
      unset: 'derived from `SECRETS_KEY`',
      description:
        'Seals secrets and environments, which only workers can open. Set it for the API instead of `SECRETS_KEY`. `npm run admin -- public-key` prints it.',
    }),
  RPC_KEY: secrets.optional().meta({
    unset: 'derived from `SECRETS_KEY`',
    description:
      'Authenticates API and workers to each other. It also encrypts stored command lines and keys the hashes of requests. `npm run admin -- public-key` prints it.',
  }),
}

const drivers = {
  SANDBOX_DRIVER: z
    .enum(['kubernetes', 'local'])
    .default('kubernetes')
    .describe('Where sandboxes run. With `npm start`, the default is `local`.'),
  KUBECONFIG: z.string().optional().meta({
    unset: 'the service account of the pod',
    description: 'The file with the address and credentials of the cluster. Only workers should have it.',
  }),
  SANDBOX_NAMESPACE: z.string().default('sandlot').describe('The namespace of the sandbox pods.'),
  SANDBOX_RUNTIME_CLASS: z
    .string()
    .optional()
    .describe('The runtime class of the pods, such as gVisor or Kata.'),
  SANDBOX_HOST_USERS: z
    .enum(['yes', 'no'])
    .default('yes')
    .describe(
      '`no` runs each pod on Kubernetes in a separate user namespace (`hostUsers: false`), which the nodes must support.',
    ),
  SANDBOX_NODE_SELECTOR: podField(z.record(z.string(), z.string()), '{"pool":"sandboxes"}')
    .optional()
    .describe(
      'The node selector of the pods, as JSON: `{"pool":"sandboxes"}`. Use it to give sandboxes [nodes of their own](hosting.md#nodes-for-sandboxes).',
    ),
  SANDBOX_TOLERATIONS: podField(z.array(toleration), '[{"key":"sandboxes","operator":"Exists"}]')
    .optional()
    .describe(
      'Additional tolerations of the pods, as JSON: `[{"key":"sandboxes","operator":"Exists","effect":"NoSchedule"}]`.',
    ),
  SANDBOX_AFFINITY: podField(affinity, '{"nodeAffinity":{…}}')
    .optional()
    .describe('The affinity of the pods, as JSON.'),
  SANDBOX_PRIORITY_CLASS: z.string().optional().meta({
    unset: 'the default class of the cluster',
    description: 'The priority class of the pods.',
  }),
  SANDBOX_IMAGE_PULL_SECRETS: list.optional().meta({
    unset: 'none',
    description:
      'Names of Secrets in that namespace with the credentials for [private images](hosting.md#private-images), comma-separated.',
  }),
  SANDBOX_DNS: list
    .pipe(z.array(z.union([z.ipv4(), z.ipv6()], 'expected IP addresses, comma-separated')).max(3))
    .optional()
    .meta({
      unset: '`1.1.1.1,8.8.8.8`, or no server with `SANDBOX_EGRESS=none`',
      description:
        'The addresses of up to three DNS servers of the pods, comma-separated. A private address also needs a [network policy](hosting.md#dns-servers) that allows it.',
    }),
  SANDBOX_NETWORK_POLICIES: list.optional().meta({
    unset: 'none',
    description:
      'Names of additional network policies in that namespace that may allow traffic to or from sandboxes, comma-separated. While [any other policy](hosting.md#isolation-checks) allows traffic, no sandbox is created.',
  }),
  SANDBOX_LOCAL_DIR: z.string().default('.data/sandboxes').describe('The folder of local sandboxes.'),
  SANDBOX_LOCAL_BWRAP: z.string().optional().meta({
    unset: 'found by `npm start`',
    description: 'The path of bubblewrap for local sandboxes.',
  }),
}

const sandboxes = {
  SANDBOX_IMAGE: image
    .default('debian:bookworm-slim')
    .describe('The default image. Any image with a POSIX shell works.'),
  SANDBOX_IMAGES: list.optional().meta({
    unset: 'only the default image',
    description:
      'The images that clients may choose, comma-separated. The default image is always one of them.',
  }),
  SANDBOX_CPU: quantity.default('1').describe('The CPU limit of a sandbox.'),
  SANDBOX_MEMORY: quantity.default('512Mi').describe('The memory limit of a sandbox.'),
  SANDBOX_DISK: quantity.default('1Gi').describe('The disk limit of a sandbox.'),
  SANDBOX_PIDS: whole
    .min(16)
    .default(256)
    .describe(
      'The maximum number of processes in a local sandbox. On Kubernetes, [the nodes](hosting.md#settings-of-the-nodes) set it.',
    ),
  SANDBOX_INODES: whole
    .min(1000)
    .default(65_536)
    .describe(
      'The maximum number of files and folders in a local sandbox, which ends as `Evicted` above it. On Kubernetes, [the nodes](hosting.md#settings-of-the-nodes) set it.',
    ),
  SANDBOX_CPU_REQUEST: quantity.default('50m').describe('The CPU request of a sandbox.'),
  SANDBOX_MEMORY_REQUEST: quantity.default('64Mi').describe('The memory request of a sandbox.'),
  SANDBOX_DISK_REQUEST: quantity.default('64Mi').describe('The disk request of a sandbox.'),
  SANDBOX_MAX_SECONDS: whole.min(1).max(86_400).default(1800).describe('The maximum lifetime of a sandbox.'),
  SANDBOX_START_SECONDS: whole
    .min(1)
    .max(3600)
    .default(60)
    .describe('The timeout for the start of a sandbox.'),
  SANDBOX_EGRESS: z
    .enum(['internet', 'none'])
    .default('internet')
    .describe(
      'The network access of a sandbox on Kubernetes: the internet except private ranges and metadata addresses, or none. Local sandboxes have no network.',
    ),
}

const pools = {
  WARM_POOL_SIZE: whole
    .min(0)
    .max(1_000)
    .default(0)
    .describe('The number of warm pods with `SANDBOX_IMAGE`.'),
  WARM_POOLS: list
    .pipe(z.array(poolEntry))
    .default([])
    .describe(
      'Warm pools of other images, comma-separated: `image=n`, or `image=min..max` for a size that follows demand.',
    ),
}

const limits = {
  QUOTA_CONCURRENT_SANDBOXES: whole.min(0).default(2).describe('Concurrent sandboxes, per account.'),
  QUOTA_SANDBOX_HOURS_PER_MONTH: z.coerce
    .number()
    .min(0)
    .default(20)
    .describe('Sandbox-hours per month, per account.'),
  RATE_SANDBOX_OPS_PER_MINUTE: perMinute.default(120).describe('Commands and file operations, per account.'),
  RATE_SANDBOX_LIFECYCLE_PER_MINUTE: perMinute.default(20).describe('Creates and destroys, per account.'),
  RATE_CONNECTIONS_PER_MINUTE: perMinute
    .default(600)
    .describe('Connections to ports of sandboxes, per account.'),
  RATE_READS_PER_MINUTE: perMinute
    .default(600)
    .describe(
      'Reads of sandboxes, lists and the account, per account. Each API process counts separately, so N processes allow N times as many.',
    ),
  RATE_CHANGES_PER_MINUTE: perMinute
    .default(60)
    .describe(
      'Changes of keys, allowlist and secrets, per account. Each API process counts separately, so N processes allow N times as many.',
    ),
  RATE_MCP_PER_MINUTE: perMinute
    .default(300)
    .describe('Messages to `/v1/mcp`, per account. A tool call also counts toward the limit of its route.'),
  RATE_SIGNUP_PER_MINUTE: perMinute.default(5).describe('Sign-ups, per IP address.'),
  RATE_LOGIN_PER_MINUTE: perMinute.default(10).describe('Logins, per IP address.'),
  RATE_LOGIN_ACCOUNT_PER_MINUTE: perMinute
    .default(10)
    .describe(
      'Logins per email address, from all IP addresses together. IP addresses of earlier logins to the account are counted separately.',
    ),
}

const processes = {
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .describe('The level of the logs, which are lines of JSON on stdout.'),
  NODE_ENV: z
    .string()
    .default('development')
    .describe('With `production`, `npm start` does not format its logs for a terminal.'),
  PASSWORD_SCRYPT_LOG_N: whole
    .min(10)
    .max(20)
    .default(17)
    .describe('The base-2 logarithm of the cost of a password hash. With 17, each takes 128 MiB.'),
  PASSWORD_HASH_CONCURRENCY: whole
    .min(1)
    .default(2)
    .describe('The number of concurrent password hashes in an API process.'),
  MEMORY_PER_ACCOUNT_MIB: whole
    .min(32)
    .default(64)
    .describe(
      'The memory budget of an account in one API or worker process, in MiB, for requests, unread answers and output, and unread stdin.',
    ),
  MEMORY_FOR_CLIENTS_MIB: whole
    .min(64)
    .default(256)
    .describe(
      'The same for all accounts together. The default is suitable for a process with a memory limit of 1 GiB.',
    ),
  DRAIN_SECONDS: whole.min(1).max(86_400).optional().meta({
    unset: '12 for an API, 20 for a worker',
    description:
      'How long a process may take after SIGTERM to finish its work: an API its requests, a worker its commands. It exits earlier if no work is left. Configure a [longer grace period](hosting.md#stopping-and-upgrading) in the supervisor.',
  }),
  SHUTDOWN_DELAY_SECONDS: whole
    .min(0)
    .max(600)
    .default(0)
    .describe(
      'How long an API still accepts requests after SIGTERM while its `/readyz` answers 503, so that load balancers can remove it.',
    ),
  WORKER_LIVENESS_TIMEOUT_SECONDS: z.coerce
    .number()
    .min(1)
    .max(20)
    .default(defaultSeconds)
    .describe(
      'How long a worker may fail to answer before the API reports its commands as lost, or sends a call to another worker. The timeouts of workers for the cluster and for shells in sandboxes are derived from it. A machine with overcommitted CPUs needs a higher value, with which [real failures are detected later](hosting.md#liveness-timeouts). Set the same value for all processes.',
    ),
  RECONCILE_INTERVAL_SECONDS: z.coerce
    .number()
    .min(0.1)
    .default(10)
    .describe('The interval of the reconciler, which compares pods with rows.'),
  SANDBOX_RECORD_DAYS: whole
    .min(35)
    .max(36_500)
    .default(400)
    .describe(
      'How many days an ended sandbox remains in lists and in usage by sandbox. Then its usage is added to sums by day, and its row is deleted.',
    ),
  CLIENT_STALL_SECONDS: whole
    .min(1)
    .max(3_600)
    .default(30)
    .describe(
      'The API closes a connection if the client reads none of the pending bytes for this long. This applies to answers, streams and WebSockets. Events of a command may stall 60 times as long, and idle streams stay open.',
    ),
  EVENT_LOOP_STALL_SECONDS: whole
    .min(0)
    .default(30)
    .describe(
      'A process exits if its event loop stalls for this long, so that its supervisor restarts it. 0 disables this.',
    ),
}

export const settingGroups = {
  Addresses: addresses,
  Databases: databases,
  Keys: keys,
  'Where sandboxes run': drivers,
  'A sandbox': sandboxes,
  'Warm pool': pools,
  'Quotas and rate limits': limits,
  'The processes': processes,
}

export const Environment = z.object({
  ...addresses,
  ...databases,
  ...keys,
  ...drivers,
  ...sandboxes,
  ...pools,
  ...limits,
  ...processes,
})
