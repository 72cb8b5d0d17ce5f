/**
 * Every setting of the service: name, type, default and purpose. The tables of docs/settings.md are generated from it;
 * `unset` is shown there instead of a default.
 */
import * as z from 'zod'
import { usualSeconds } from './liveness-timeouts.ts'
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
/** `name`, `*.name` or an address, each with a port or without; or `*`. */
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

const addresses = {
  PORT: port.default(8080).describe('The port of the API.'),
  HOST: z.string().default('127.0.0.1').describe('The address that the API listens on.'),
  ALLOWED_HOSTS: list
    .pipe(z.array(host))
    .default([])
    .describe(
      'The names that clients use for the API, comma-separated: `sandlot.example.com`, `*.example.com`, with a port or without, or `*` for any. A request by another name gets 421. Localhost, loopback addresses and `HOST` are always allowed.',
    ),
  TRUSTED_PROXIES: list
    .default([])
    .describe(
      'Addresses and ranges of proxies, comma-separated. The API believes only their `X-Forwarded-For`.',
    ),
  INTERNAL_PORT: port.default(9090).describe('The port of health checks and metrics.'),
  // Far above INTERNAL_PORT, which `npm start` counts up for each process.
  RPC_PORT: port
    .default(9443)
    .describe('The port at which a worker takes calls of the API and of other workers, over TLS.'),
  INTERNAL_HOST: z
    .string()
    .default('127.0.0.1')
    .describe(
      'The address of these two ports. The API and all workers must be able to reach that of each worker.',
    ),
}

const databases = {
  DATABASE_URL: z
    .string()
    .min(1, 'is needed: postgresql://user:password@host/database')
    .describe(
      'PostgreSQL 15 or later: `postgresql://user:password@host/database`. `npm start` brings its own.',
    ),
  REDIS_URL: z
    .string()
    .min(1, 'is needed: redis://host:6379, or unix:///path/of/redis.sock')
    .describe(
      'Redis 7 or later with `maxmemory-policy noeviction`: `redis://…`, `rediss://…` or `unix:///path`. `npm start` brings its own.',
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
    .regex(/^[\w-]{43}$/, 'expected what `npm run admin -- public-key` prints')
    .optional()
    .meta({
      unset: 'made of `SECRETS_KEY`',
      description:
        'Seals what workers open. Give it to the API in place of `SECRETS_KEY`; `npm run admin -- public-key` prints it.',
    }),
  RPC_KEY: secrets.optional().meta({
    unset: 'made of `SECRETS_KEY`',
    description:
      'API and workers authenticate each other with it. It also protects the stored text of commands and the hashes of requests. `npm run admin -- public-key` prints it.',
  }),
}

const drivers = {
  SANDBOX_DRIVER: z
    .enum(['kubernetes', 'local'])
    .default('kubernetes')
    .describe('Where sandboxes run. `npm start` takes `local` unless told otherwise.'),
  KUBECONFIG: z.string().optional().meta({
    unset: 'that of its own pod',
    description: "The file with the cluster's address and credential. Only workers should have it.",
  }),
  SANDBOX_NAMESPACE: z.string().default('sandlot').describe('The namespace of the pods.'),
  SANDBOX_RUNTIME_CLASS: z
    .string()
    .optional()
    .describe('The runtime class of the pods, such as gVisor or Kata.'),
  SANDBOX_HOST_USERS: z
    .enum(['yes', 'no'])
    .default('yes')
    .describe(
      '`no` gives each pod on Kubernetes a user namespace of its own (`hostUsers: false`). The nodes must support it.',
    ),
  SANDBOX_NETWORK_POLICIES: list.optional().meta({
    unset: 'none',
    description:
      'Network policies of your own in that namespace that may open ways to or from sandboxes, by name, comma-separated. While [any other](hosting.md#isolation-checks) does, no sandbox is made.',
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
    unset: 'the default image alone',
    description:
      'The images that a client may ask for, comma-separated. The default image is always one of them.',
  }),
  SANDBOX_CPU: quantity.default('1').describe('The most CPU that a sandbox gets.'),
  SANDBOX_MEMORY: quantity.default('512Mi').describe('The most memory of a sandbox.'),
  SANDBOX_DISK: quantity.default('1Gi').describe('The most disk of a sandbox.'),
  SANDBOX_PIDS: whole
    .min(16)
    .default(256)
    .describe(
      'The most processes of a local sandbox. On Kubernetes [the nodes set it](hosting.md#settings-of-the-nodes).',
    ),
  SANDBOX_INODES: whole
    .min(1000)
    .default(65_536)
    .describe(
      'The most files and folders of a local sandbox; one with more ends as `Evicted`. On Kubernetes [the nodes set it](hosting.md#settings-of-the-nodes).',
    ),
  SANDBOX_CPU_REQUEST: quantity
    .default('50m')
    .describe('The CPU that the scheduler sets aside for a sandbox.'),
  SANDBOX_MEMORY_REQUEST: quantity.default('64Mi').describe('The memory that the scheduler sets aside.'),
  SANDBOX_DISK_REQUEST: quantity.default('64Mi').describe('The disk that the scheduler sets aside.'),
  SANDBOX_MAX_SECONDS: whole.min(1).max(86_400).default(1800).describe('The longest life of a sandbox.'),
  SANDBOX_START_SECONDS: whole
    .min(1)
    .max(3600)
    .default(60)
    .describe('How long the start of a sandbox may take.'),
  SANDBOX_EGRESS: z
    .enum(['internet', 'none'])
    .default('internet')
    .describe(
      'What a sandbox on Kubernetes reaches: the internet without private ranges and metadata addresses, or nothing. Local sandboxes have no network.',
    ),
}

const pools = {
  WARM_POOL_SIZE: whole
    .min(0)
    .max(1_000)
    .default(0)
    .describe('How many pods of `SANDBOX_IMAGE` are kept ready.'),
  WARM_POOLS: list
    .pipe(z.array(poolEntry))
    .default([])
    .describe(
      'Pools of other images, comma-separated: `image=n`, or `image=min..max` for one that follows demand between the two.',
    ),
}

const limits = {
  QUOTA_CONCURRENT_SANDBOXES: whole.min(0).default(2).describe('Sandboxes at once, per account.'),
  QUOTA_SANDBOX_HOURS_PER_MONTH: z.coerce
    .number()
    .min(0)
    .default(20)
    .describe('Sandbox-hours a month, per account.'),
  RATE_SANDBOX_OPS_PER_MINUTE: perMinute.default(120).describe('Commands and file operations, per account.'),
  RATE_SANDBOX_LIFECYCLE_PER_MINUTE: perMinute.default(20).describe('Creates and destroys, per account.'),
  RATE_CONNECTIONS_PER_MINUTE: perMinute
    .default(600)
    .describe('Connections to ports of sandboxes, per account.'),
  RATE_READS_PER_MINUTE: perMinute
    .default(600)
    .describe(
      'Looking at sandboxes, lists and the account, per account. Each API process counts for itself, so N of them allow N times as much.',
    ),
  RATE_CHANGES_PER_MINUTE: perMinute
    .default(60)
    .describe(
      'Changes of keys, allowlist and secrets, per account. Each API process counts for itself, so N of them allow N times as much.',
    ),
  RATE_MCP_PER_MINUTE: perMinute
    .default(300)
    .describe('Messages to `/v1/mcp`, per account. The call of a tool also counts as its route.'),
  RATE_SIGNUP_PER_MINUTE: perMinute.default(5).describe('Sign-ups, per IP address.'),
  RATE_LOGIN_PER_MINUTE: perMinute.default(10).describe('Logins, per IP address.'),
  RATE_LOGIN_ACCOUNT_PER_MINUTE: perMinute
    .default(10)
    .describe(
      'Logins per email address, from all IP addresses together. One that logged in to the account before is counted apart.',
    ),
}

const processes = {
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .describe('What is logged, as lines of JSON on stdout.'),
  NODE_ENV: z
    .string()
    .default('development')
    .describe('`production` keeps `npm start` from making its logs readable on a terminal.'),
  PASSWORD_SCRYPT_LOG_N: whole
    .min(10)
    .max(20)
    .default(17)
    .describe('The cost of a password check as a power of two; 17 takes 128 MiB for each.'),
  PASSWORD_HASH_CONCURRENCY: whole
    .min(1)
    .default(2)
    .describe('How many password checks run at once in an API process.'),
  MEMORY_PER_ACCOUNT_MIB: whole
    .min(32)
    .default(64)
    .describe(
      'The memory, in MiB, that one API or worker process holds for an account: requests, answers and output that are not read yet, stdin that a command has yet to read.',
    ),
  MEMORY_FOR_CLIENTS_MIB: whole
    .min(64)
    .default(256)
    .describe('The same for all accounts together. The default fits a process that may take 1 GiB.'),
  DRAIN_SECONDS: whole.min(1).max(86_400).optional().meta({
    unset: '12 for an API, 20 for a worker',
    description:
      'How long a process that is told to stop serves what it holds: an API its requests, a worker its commands. It ends sooner when nothing is left. Allow it [some seconds more](hosting.md#stopping-and-upgrading).',
  }),
  SHUTDOWN_DELAY_SECONDS: whole
    .min(0)
    .max(600)
    .default(0)
    .describe(
      'How long an API that is told to stop still takes requests, while its `/readyz` says 503: until load balancers have noticed.',
    ),
  WORKER_LIVENESS_TIMEOUT_SECONDS: z.coerce
    .number()
    .min(1)
    .max(20)
    .default(usualSeconds)
    .describe(
      'How long a worker may be silent before the API tells its commands as lost, or gives a call to another one. How long workers wait for the cluster and for shells in sandboxes follows from it. A machine whose processors are overcommitted needs more; [it costs time](hosting.md#liveness-timeouts) when something is really gone. Set the same for all processes.',
    ),
  RECONCILE_INTERVAL_SECONDS: z.coerce
    .number()
    .min(0.1)
    .default(10)
    .describe('How often the workers compare pods with rows.'),
  SANDBOX_RECORD_DAYS: whole
    .min(35)
    .max(36_500)
    .default(400)
    .describe(
      'How many days an ended sandbox stays listed, and in usage by sandbox. Then its usage is added to sums by day, and its row is deleted.',
    ),
  CLIENT_STALL_SECONDS: whole
    .min(1)
    .max(3_600)
    .default(30)
    .describe(
      'An API closes a connection whose client takes nothing for so long while bytes wait for it: answers, streams and WebSockets. Events of a command may stall 60 times as long, and an idle stream stays open.',
    ),
  EVENT_LOOP_STALL_SECONDS: whole
    .min(0)
    .default(30)
    .describe(
      'A process whose event loop stands still for so long ends itself, to be started again. 0 means never.',
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
