/**
 * The settings of a process: read from the environment once, checked once, typed. Nothing
 * else in the project reads `process.env`, but for the client and the scripts that start things.
 */
import { resolve } from 'node:path'
import * as z from 'zod'
import { callsKeyOf, publicKeyOf } from './seal.ts'
import { poolEntry, poolsProblem, readPools } from './settings-pools.ts'

export type Settings = ReturnType<typeof readSettings>

export class SettingsError extends Error {
  override name = 'SettingsError'
}

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

const Environment = z.object({
  NODE_ENV: z.string().default('development'),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  PORT: port.default(8080),
  HOST: z.string().default('127.0.0.1'),
  ALLOWED_HOSTS: list.pipe(z.array(host)).default([]),
  INTERNAL_PORT: port.default(9090),
  INTERNAL_HOST: z.string().default('127.0.0.1'),
  DATABASE_URL: z.string().min(1, 'is needed: postgresql://user:password@host/database'),
  REDIS_URL: z.string().min(1, 'is needed: redis://host:6379, or unix:///path/of/redis.sock'),
  JWT_SECRET: secrets.optional(),
  SECRETS_KEY: secrets.optional(),
  SECRETS_PUBLIC_KEY: z
    .string()
    .regex(/^[\w-]{43}$/, 'expected what `npm run admin -- public-key` prints')
    .optional(),
  CALLS_KEY: secrets.optional(),
  SANDBOX_DRIVER: z.enum(['kubernetes', 'local']).default('kubernetes'),
  KUBECONFIG: z.string().optional(),
  SANDBOX_NAMESPACE: z.string().default('sandlot'),
  SANDBOX_LOCAL_DIR: z.string().default('.data/sandboxes'),
  SANDBOX_LOCAL_BWRAP: z.string().optional(),
  SANDBOX_LOCAL_UNSAFE: z.enum(['yes', 'no']).default('no'),
  SANDBOX_IMAGE: image.default('debian:bookworm-slim'),
  SANDBOX_IMAGES: list.optional(),
  SANDBOX_CPU: quantity.default('1'),
  SANDBOX_MEMORY: quantity.default('512Mi'),
  SANDBOX_DISK: quantity.default('1Gi'),
  SANDBOX_PIDS: whole.min(16).default(256),
  SANDBOX_INODES: whole.min(1000).default(65_536),
  SANDBOX_RUNTIME_CLASS: z.string().optional(),
  SANDBOX_CPU_REQUEST: quantity.default('50m'),
  SANDBOX_MEMORY_REQUEST: quantity.default('64Mi'),
  SANDBOX_DISK_REQUEST: quantity.default('64Mi'),
  SANDBOX_MAX_SECONDS: whole.min(1).max(86_400).default(1800),
  SANDBOX_START_SECONDS: whole.min(1).max(3600).default(60),
  SANDBOX_EGRESS: z.enum(['internet', 'none']).default('internet'),
  QUOTA_CONCURRENT_SANDBOXES: whole.min(0).default(2),
  QUOTA_SANDBOX_HOURS_PER_MONTH: z.coerce.number().min(0).default(20),
  RATE_SANDBOX_OPS_PER_MINUTE: perMinute.default(120),
  RATE_SANDBOX_LIFECYCLE_PER_MINUTE: perMinute.default(20),
  RATE_SIGNUP_PER_MINUTE: perMinute.default(5),
  RATE_LOGIN_PER_MINUTE: perMinute.default(10),
  RATE_LOGIN_ACCOUNT_PER_MINUTE: perMinute.default(10),
  RATE_MCP_PER_MINUTE: perMinute.default(300),
  RATE_READS_PER_MINUTE: perMinute.default(600),
  RATE_CHANGES_PER_MINUTE: perMinute.default(60),
  TRUSTED_PROXIES: list.default([]),
  PASSWORD_SCRYPT_LOG_N: whole.min(10).max(20).default(17),
  PASSWORD_SCRYPT_AT_ONCE: whole.min(1).default(2),
  WARM_POOL_SIZE: whole.min(0).max(1_000).default(0),
  WARM_POOLS: list.pipe(z.array(poolEntry)).default([]),
  EVENT_LOOP_STALL_SECONDS: whole.min(0).default(30),
  SWEEP_SECONDS: z.coerce.number().min(0.1).default(10),
})

/** The few settings that `npm run cluster` needs, by the rules of {@link readSettings}. */
export function readClusterSettings(environment: Record<string, string | undefined>) {
  const named = Environment.pick({
    KUBECONFIG: true,
    SANDBOX_NAMESPACE: true,
    SANDBOX_EGRESS: true,
    SANDBOX_PIDS: true,
  })
  const env = check(named, environment)
  return {
    kubeconfig: env.KUBECONFIG,
    namespace: env.SANDBOX_NAMESPACE,
    egress: env.SANDBOX_EGRESS,
    pids: env.SANDBOX_PIDS,
  }
}

export type Role = 'api' | 'worker'

type Given = z.output<typeof Environment>

/** The API seals what a worker opens, and only the API signs sessions in. @returns the keys that are not set */
function missingKeys(role: Role, env: Given): (keyof Given)[] {
  const needed: (keyof Given)[] =
    role === 'worker'
      ? ['SECRETS_KEY']
      : ['JWT_SECRET', ...(env.SECRETS_KEY ? [] : (['SECRETS_PUBLIC_KEY', 'CALLS_KEY'] as const))]
  return needed.filter((name) => env[name] === undefined)
}

/**
 * Reads the settings of an API or worker process.
 * @param environment usually `process.env`
 * @param role which keys it needs
 * @throws {SettingsError} names every setting that is missing or wrong, and never shows a value
 */
export function readSettings(environment: Record<string, string | undefined>, role: Role = 'api') {
  const env = check(Environment, environment)
  const missing = missingKeys(role, env)
  if (missing.length > 0) throw new SettingsError(describeProblems(missing.map(describeMissing)))
  const secretsKeys = env.SECRETS_KEY ?? []
  /** What a client may ask for; the default image is always among them. */
  const images = [...new Set([env.SANDBOX_IMAGE, ...(env.SANDBOX_IMAGES ?? [])])]
  const wrong = poolsProblem(env, { image: env.SANDBOX_IMAGE, images })
  if (wrong) throw new SettingsError(describeProblems([`  ${wrong}`]))
  return {
    production: env.NODE_ENV === 'production',
    logLevel: env.LOG_LEVEL,
    http: { host: env.HOST, port: env.PORT },
    /** Names that the API answers to, beside its own address and this machine's. */
    allowedHosts: env.ALLOWED_HOSTS,
    /** Health and metrics; in a worker also the calls of the API. */
    internal: { host: env.INTERNAL_HOST, port: env.INTERNAL_PORT },
    databaseUrl: env.DATABASE_URL,
    redisUrl: env.REDIS_URL,
    /** Newest first: the first signs, all verify. */
    jwtSecrets: env.JWT_SECRET ?? [],
    /** Newest first. They open what is sealed: an API needs none. */
    secretsKeys,
    /** What is sealed is sealed to it. */
    secretsPublicKey: env.SECRETS_PUBLIC_KEY ?? publicKeyOf(secretsKeys[0]!),
    /** Newest first: what API and workers know each other by. */
    callsKeys: env.CALLS_KEY ?? secretsKeys.map(callsKeyOf),
    driver: env.SANDBOX_DRIVER,
    kubernetes: { kubeconfig: env.KUBECONFIG, namespace: env.SANDBOX_NAMESPACE },
    local: {
      directory: resolve(env.SANDBOX_LOCAL_DIR),
      bwrap: env.SANDBOX_LOCAL_BWRAP,
      /** Sandboxes may run without walls, where there are none to be had. */
      isUnsafe: env.SANDBOX_LOCAL_UNSAFE === 'yes',
    },
    sandbox: {
      image: env.SANDBOX_IMAGE,
      images,
      /** Kubernetes quantities. */
      limits: { cpu: env.SANDBOX_CPU, memory: env.SANDBOX_MEMORY, disk: env.SANDBOX_DISK },
      requests: {
        cpu: env.SANDBOX_CPU_REQUEST,
        memory: env.SANDBOX_MEMORY_REQUEST,
        disk: env.SANDBOX_DISK_REQUEST,
      },
      pids: env.SANDBOX_PIDS,
      /** Files and folders. On Kubernetes the nodes' own settings bound them. */
      inodes: env.SANDBOX_INODES,
      runtimeClass: env.SANDBOX_RUNTIME_CLASS,
      maxSeconds: env.SANDBOX_MAX_SECONDS,
      startSeconds: env.SANDBOX_START_SECONDS,
      egress: env.SANDBOX_EGRESS,
    },
    /** Warm pods that are kept ready, by image. */
    pools: readPools(env, env.SANDBOX_IMAGE),
    quotas: { concurrent: env.QUOTA_CONCURRENT_SANDBOXES, hoursPerMonth: env.QUOTA_SANDBOX_HOURS_PER_MONTH },
    /** Tokens per minute, by bucket. */
    rates: {
      sandbox_ops: env.RATE_SANDBOX_OPS_PER_MINUTE,
      sandbox_lifecycle: env.RATE_SANDBOX_LIFECYCLE_PER_MINUTE,
      signup: env.RATE_SIGNUP_PER_MINUTE,
      login: env.RATE_LOGIN_PER_MINUTE,
      login_account: env.RATE_LOGIN_ACCOUNT_PER_MINUTE,
      mcp: env.RATE_MCP_PER_MINUTE,
      reads: env.RATE_READS_PER_MINUTE,
      changes: env.RATE_CHANGES_PER_MINUTE,
    },
    /** Addresses and CIDR ranges whose X-Forwarded-For is believed. */
    trustedProxies: env.TRUSTED_PROXIES,
    password: { logN: env.PASSWORD_SCRYPT_LOG_N, atOnce: env.PASSWORD_SCRYPT_AT_ONCE },
    sweepSeconds: env.SWEEP_SECONDS,
    /** A process whose event loop stands still for so long ends itself; 0: never. */
    stallSeconds: env.EVENT_LOOP_STALL_SECONDS,
  }
}

function check<Shape extends z.ZodType>(
  shape: Shape,
  environment: Record<string, string | undefined>,
): z.output<Shape> {
  // `NAME=` in an .env file means "not set".
  const given = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  )
  const parsed = shape.safeParse(given)
  if (parsed.success) return parsed.data
  const lines = parsed.error.issues.map((issue) => {
    const name = String(issue.path[0])
    return given[name] === undefined ? describeMissing(name) : `  ${name}: ${issue.message}`
  })
  throw new SettingsError(describeProblems(lines))
}

const describeMissing = (name: string) => `  ${name}: is not set, and has no default`

const describeProblems = (lines: string[]) =>
  `Some settings are missing or wrong:\n${[...new Set(lines)].join('\n')}\nREADME.md lists all of them.`
