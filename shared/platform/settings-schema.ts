/** All settings. In docs/settings.md (`npm run docs`), a setting's `unset` text is shown as its default. */
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
const host = z
  .string()
  .regex(
    /^(\*|(\*\.)?[\w.-]+(:\d+)?|\[[\da-f:.]+\](:\d+)?)$/i,
    'expected names such as sandlot.example.com, *.example.com or sandlot.example.com:8443, comma-separated',
  )
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
/** Returns the schema of a setting that contains a field of the pod specification as JSON. */
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
  PORT: port.default(8080).describe('The port that the API listens on.'),
  HOST: z.string().default('127.0.0.1').describe('The address that the API listens on.'),
  ALLOWED_HOSTS: list
    .pipe(z.array(host))
    .default([])
    .describe(
      'The host names that clients may use for the API, comma-separated: `sandlot.example.com` or `*.example.com`, with or without a port, or `*` for any host. Requests for other hosts are rejected with 421. Localhost, loopback addresses and `HOST` are always allowed.',
    ),
  TRUSTED_PROXIES: list
    .default([])
    .describe(
      'Addresses and CIDR ranges of proxies, comma-separated. The API trusts `X-Forwarded-For` only in requests from these proxies.',
    ),
  INTERNAL_PORT: port.default(9090).describe('The port that serves health checks and metrics.'),
  // Far above INTERNAL_PORT, which `npm start` increments for each process.
  RPC_PORT: port
    .default(9443)
    .describe('The port on which a worker accepts RPCs from the API and from other workers, over TLS.'),
  INTERNAL_HOST: z
    .string()
    .default('127.0.0.1')
    .describe(
      'The address to which `INTERNAL_PORT` and `RPC_PORT` are bound. The API and all workers must be able to reach each worker at this address.',
    ),
}

const databases = {
  DATABASE_URL: z
    .string()
    .min(1, 'is required: postgresql://user:password@host/database')
    .describe(
      'PostgreSQL 15 or later: `postgresql://user:password@host/database`. If unset, `npm start` runs its own server.',
    ),
  REDIS_URL: z
    .string()
    .min(1, 'is required: redis://host:6379, or unix:///path/of/redis.sock')
    .describe(
      'Redis 7 or later with `maxmemory-policy noeviction`: `redis://…`, `rediss://…` or `unix:///path`. If unset, `npm start` runs its own server.',
    ),
}

const keys = {
  JWT_SECRET: secrets.optional().meta({
    unset: '**required by the API**',
    description: 'The key that signs session tokens. Only the API needs it.',
  }),
  SECRETS_KEY: secrets.optional().meta({
    unset: '**required by workers**',
    description: 'The key that decrypts secrets and environments. Set it only for workers.',
  }),
  SECRETS_PUBLIC_KEY: z
    .string()
    .regex(/^[\w-]{43}$/, 'expected the output of `npm run admin -- public-key`')
    .optional()
    .meta({
      unset: 'derived from `SECRETS_KEY`',
      description:
        'The key that the API uses to encrypt secrets and environments, so that only workers can decrypt them. Set it for the API instead of `SECRETS_KEY`. `npm run admin -- public-key` prints this key.',
    }),
  RPC_KEY: secrets.optional().meta({
    unset: 'derived from `SECRETS_KEY`',
    description:
      'The key that the API and workers use to authenticate each other. It also encrypts stored command lines and is used to hash requests. `npm run admin -- public-key` prints this key.',
  }),
}

const drivers = {
  SANDBOX_DRIVER: z
    .enum(['kubernetes', 'local'])
    .default('kubernetes')
    .describe(
      'Where sandboxes run: on Kubernetes or on this machine. With `npm start`, the default is `local`.',
    ),
  KUBECONFIG: z.string().optional().meta({
    unset: 'the service account of the pod',
    description: 'The path of the kubeconfig file. Set it only for workers.',
  }),
  SANDBOX_NAMESPACE: z.string().default('sandlot').describe('The namespace of the sandbox pods.'),
  SANDBOX_RUNTIME_CLASS: z
    .string()
    .optional()
    .describe('The runtime class for sandbox pods, such as gVisor or Kata.'),
  SANDBOX_HOST_USERS: z
    .enum(['yes', 'no'])
    .default('yes')
    .describe(
      'Whether sandbox pods share the user namespace of their node. With `no`, each pod runs in a separate user namespace (`hostUsers: false`), which the nodes must support.',
    ),
  SANDBOX_NODE_SELECTOR: podField(z.record(z.string(), z.string()), '{"pool":"sandboxes"}')
    .optional()
    .describe(
      'The node selector for sandbox pods, as JSON, for example `{"pool":"sandboxes"}`. Use it to run sandboxes on [dedicated nodes](hosting.md#nodes-for-sandboxes).',
    ),
  SANDBOX_TOLERATIONS: podField(z.array(toleration), '[{"key":"sandboxes","operator":"Exists"}]')
    .optional()
    .describe(
      'Additional tolerations for sandbox pods, as JSON, for example `[{"key":"sandboxes","operator":"Exists","effect":"NoSchedule"}]`.',
    ),
  SANDBOX_AFFINITY: podField(affinity, '{"nodeAffinity":{…}}')
    .optional()
    .describe('The affinity rules for sandbox pods, as JSON.'),
  SANDBOX_PRIORITY_CLASS: z.string().optional().meta({
    unset: "the cluster's default class",
    description: 'The priority class for sandbox pods.',
  }),
  SANDBOX_IMAGE_PULL_SECRETS: list.optional().meta({
    unset: 'none',
    description:
      'Names of Secrets in `SANDBOX_NAMESPACE` that contain the credentials for [private images](hosting.md#private-images), comma-separated.',
  }),
  SANDBOX_DNS: list
    .pipe(z.array(z.union([z.ipv4(), z.ipv6()], 'expected IP addresses, comma-separated')).max(3))
    .optional()
    .meta({
      unset: '`1.1.1.1,8.8.8.8`, or no server if `SANDBOX_EGRESS` is `none`',
      description:
        'Up to three IP addresses of DNS servers for sandbox pods, comma-separated. A server with a private address also needs a [network policy](hosting.md#dns-servers) that allows traffic to it.',
    }),
  SANDBOX_NETWORK_POLICIES: list.optional().meta({
    unset: 'none',
    description:
      'Names of additional network policies in `SANDBOX_NAMESPACE` that may allow traffic to or from sandboxes, comma-separated. While [any other policy](hosting.md#isolation-checks) allows such traffic, no sandbox is created.',
  }),
  SANDBOX_LOCAL_DIR: z
    .string()
    .default('.data/sandboxes')
    .describe('The folder that contains the files of local sandboxes.'),
  SANDBOX_LOCAL_BWRAP: z.string().optional().meta({
    unset: 'found by `npm start`',
    description: 'The path of the bubblewrap executable, which local sandboxes need.',
  }),
}

const sandboxes = {
  SANDBOX_IMAGE: z
    .string()
    .min(1)
    .default('debian:bookworm-slim')
    .describe('The default image. Any image with a POSIX shell works.'),
  SANDBOX_IMAGES: list.optional().meta({
    unset: 'only the default image',
    description: 'The images that clients may choose, comma-separated. The default image is always allowed.',
  }),
  SANDBOX_CPU: quantity.default('1').describe('The CPU limit of a sandbox.'),
  SANDBOX_MEMORY: quantity.default('512Mi').describe('The memory limit of a sandbox.'),
  SANDBOX_DISK: quantity.default('1Gi').describe('The disk limit of a sandbox.'),
  SANDBOX_PIDS: whole
    .min(16)
    .default(256)
    .describe(
      'The maximum number of processes in a local sandbox. On Kubernetes, [the nodes](hosting.md#settings-of-the-nodes) set this limit.',
    ),
  SANDBOX_INODES: whole
    .min(1000)
    .default(65_536)
    .describe(
      'The maximum number of files and folders in a local sandbox. A sandbox that exceeds this number fails with `Evicted`. On Kubernetes, [the nodes](hosting.md#settings-of-the-nodes) set this limit.',
    ),
  SANDBOX_CPU_REQUEST: quantity.default('50m').describe('The CPU request of a sandbox.'),
  SANDBOX_MEMORY_REQUEST: quantity.default('64Mi').describe('The memory request of a sandbox.'),
  SANDBOX_DISK_REQUEST: quantity.default('64Mi').describe('The disk request of a sandbox.'),
  SANDBOX_MAX_SECONDS: whole
    .min(1)
    .max(86_400)
    .default(1800)
    .describe('The maximum lifetime of a sandbox, in seconds.'),
  SANDBOX_START_SECONDS: whole
    .min(1)
    .max(3600)
    .default(60)
    .describe('The maximum time for a sandbox to start, in seconds.'),
  SANDBOX_EGRESS: z
    .enum(['internet', 'none'])
    .default('internet')
    .describe(
      'The network access of sandboxes on Kubernetes: either none, or the internet without private address ranges and metadata services. Local sandboxes have no network access.',
    ),
}

const pools = {
  WARM_POOL_SIZE: whole.min(0).max(1_000).default(0).describe('The number of warm pods for `SANDBOX_IMAGE`.'),
  WARM_POOLS: list
    .pipe(z.array(poolEntry))
    .default([])
    .describe(
      'Warm pools for other images, comma-separated: `image=n`, or `image=min..max` for a size that follows demand.',
    ),
}

const limits = {
  QUOTA_CONCURRENT_SANDBOXES: whole
    .min(0)
    .default(2)
    .describe('The maximum number of concurrent sandboxes per account.'),
  QUOTA_SANDBOX_HOURS_PER_MONTH: z.coerce
    .number()
    .min(0)
    .default(20)
    .describe('The maximum number of sandbox-hours per account per month.'),
  RATE_SANDBOX_OPS_PER_MINUTE: perMinute
    .default(120)
    .describe('The maximum number of commands and file operations per account per minute.'),
  RATE_SANDBOX_LIFECYCLE_PER_MINUTE: perMinute
    .default(20)
    .describe('The maximum number of requests to create or destroy sandboxes, per account per minute.'),
  RATE_CONNECTIONS_PER_MINUTE: perMinute
    .default(600)
    .describe('The maximum number of connections to sandbox ports per account per minute.'),
  RATE_READS_PER_MINUTE: perMinute
    .default(600)
    .describe(
      'The maximum number of requests to read sandboxes, lists or the account, per account per minute. Each API process counts separately, so N processes allow N times as many requests.',
    ),
  RATE_CHANGES_PER_MINUTE: perMinute
    .default(60)
    .describe(
      "The maximum number of requests to change API keys, secrets, the allowlist or a sandbox's fields, per account per minute. Each API process counts separately, so N processes allow N times as many requests.",
    ),
  RATE_MCP_PER_MINUTE: perMinute
    .default(300)
    .describe(
      'The maximum number of messages to `/v1/mcp` per account per minute. A tool call also counts toward the limit of the route that it uses.',
    ),
  RATE_SIGNUP_PER_MINUTE: perMinute
    .default(5)
    .describe('The maximum number of sign-ups per IP address per minute.'),
  RATE_LOGIN_PER_MINUTE: perMinute
    .default(10)
    .describe('The maximum number of logins per IP address per minute.'),
  RATE_LOGIN_ACCOUNT_PER_MINUTE: perMinute
    .default(10)
    .describe(
      'The maximum number of logins per email address per minute, across all IP addresses. Logins from an address that the account has used before are counted separately.',
    ),
}

const processes = {
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .describe('The minimum level of logged messages. Logs are lines of JSON on stdout.'),
  NODE_ENV: z
    .string()
    .default('development')
    .describe(
      'With `production`, `npm start` prints logs as JSON instead of formatting them for a terminal.',
    ),
  PASSWORD_SCRYPT_LOG_N: whole
    .min(10)
    .max(20)
    .default(17)
    .describe(
      'The base-2 logarithm of the scrypt cost of a password hash. With 17, computing a hash uses 128 MiB of memory.',
    ),
  PASSWORD_HASH_CONCURRENCY: whole
    .min(1)
    .default(2)
    .describe('The maximum number of password hashes that an API process computes concurrently.'),
  MEMORY_PER_ACCOUNT_MIB: whole
    .min(32)
    .default(64)
    .describe(
      'The memory budget of each account in one API or worker process, in MiB. It covers requests, unread responses, unread output and unread stdin.',
    ),
  MEMORY_FOR_CLIENTS_MIB: whole
    .min(64)
    .default(256)
    .describe(
      'The total memory budget of all accounts in one process, in MiB. The default suits a process with a memory limit of 1 GiB.',
    ),
  DRAIN_SECONDS: whole.min(1).max(86_400).optional().meta({
    unset: '12 for an API, 20 for a worker',
    description:
      'The maximum time, in seconds, that a process waits after SIGTERM for its work to finish: an API for its requests, a worker for its commands. The process exits earlier if no work is left. Configure a [longer grace period](hosting.md#stopping-and-upgrading) in the supervisor.',
  }),
  SHUTDOWN_DELAY_SECONDS: whole
    .min(0)
    .max(600)
    .default(0)
    .describe(
      'How long, in seconds, an API keeps accepting requests after SIGTERM. During this time, its `/readyz` returns 503, so that load balancers can remove it.',
    ),
  WORKER_LIVENESS_TIMEOUT_SECONDS: z.coerce
    .number()
    .min(1)
    .max(20)
    .default(defaultSeconds)
    .describe(
      'How long, in seconds, a worker may be unresponsive before the API reports its commands as lost or sends a call to another worker. Workers derive their timeouts for the cluster and for shells in sandboxes from this setting. A machine with overcommitted CPUs needs a higher value, which [delays the detection of real failures](hosting.md#liveness-timeouts). Set the same value for all processes.',
    ),
  RECONCILE_INTERVAL_SECONDS: z.coerce
    .number()
    .min(0.1)
    .default(10)
    .describe(
      'The interval, in seconds, at which the reconciler compares the pods with the sandbox rows in the database.',
    ),
  SANDBOX_RECORD_DAYS: whole
    .min(35)
    .max(36_500)
    .default(400)
    .describe(
      'How many days a destroyed sandbox remains in lists and in per-sandbox usage. After that, its row is deleted, and its usage is kept only in daily totals.',
    ),
  CLIENT_STALL_SECONDS: whole
    .min(1)
    .max(3_600)
    .default(30)
    .describe(
      'The API closes a connection if the client reads none of the pending bytes for this many seconds. This applies to responses, streams and WebSockets. For a stream of events, the limit is 60 times as long. Idle streams stay open.',
    ),
  EVENT_LOOP_STALL_SECONDS: whole
    .min(0)
    .default(30)
    .describe(
      'A process exits if its event loop stalls for this many seconds, so that its supervisor restarts it. 0 disables this check.',
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
