/** Reads the settings. No other code in the API or the workers reads `process.env`. */
import { resolve } from 'node:path'
import type * as z from 'zod'
import { livenessTimeoutsOf } from './liveness-timeouts.ts'
import { publicKeyOf, rpcKeyOf } from './seal.ts'
import { poolsProblem, readPools } from './settings-pools.ts'
import { Environment } from './settings-schema.ts'

export type Settings = ReturnType<typeof readSettings>

export class SettingsError extends Error {
  override name = 'SettingsError'
}

export const readPasswordCost = (environment: Record<string, string | undefined>): number =>
  check(Environment.pick({ PASSWORD_SCRYPT_LOG_N: true }), environment).PASSWORD_SCRYPT_LOG_N

export function readInternalServer(environment: Record<string, string | undefined>) {
  const env = check(Environment.pick({ INTERNAL_HOST: true, INTERNAL_PORT: true }), environment)
  return { host: env.INTERNAL_HOST, port: env.INTERNAL_PORT }
}

const mib = 1024 * 1024

export type Role = 'api' | 'worker'

type EnvironmentValues = z.output<typeof Environment>

function missingKeys(role: Role, env: EnvironmentValues): (keyof EnvironmentValues)[] {
  const needed: (keyof EnvironmentValues)[] =
    role === 'worker'
      ? ['SECRETS_KEY']
      : ['JWT_SECRET', ...(env.SECRETS_KEY ? [] : (['SECRETS_PUBLIC_KEY', 'RPC_KEY'] as const))]
  return needed.filter((name) => env[name] === undefined)
}

/** Reads only the driver settings. Databases and keys need not be configured. */
export const readDriverSettings = (environment: Record<string, string | undefined>) =>
  driverSettings(check(Environment.omit({ DATABASE_URL: true, REDIS_URL: true }), environment))

/**
 * @throws {SettingsError} if settings are missing or invalid; the message contains all of their names, but no
 * values
 */
export function readSettings(environment: Record<string, string | undefined>, role: Role = 'api') {
  const env = check(Environment, environment)
  const missing = missingKeys(role, env)
  if (missing.length > 0) throw new SettingsError(describeProblems(missing.map(describeMissing)))
  const secretsKeys = env.SECRETS_KEY ?? []
  const driver = driverSettings(env)
  const wrong = poolsProblem(env, driver.sandbox)
  if (wrong) throw new SettingsError(describeProblems([`  ${wrong}`]))
  return {
    production: env.NODE_ENV === 'production',
    logLevel: env.LOG_LEVEL,
    http: { host: env.HOST, port: env.PORT },
    allowedHosts: env.ALLOWED_HOSTS,
    internal: { host: env.INTERNAL_HOST, port: env.INTERNAL_PORT },
    calls: { host: env.INTERNAL_HOST, port: env.RPC_PORT },
    memory: { ofAccount: env.MEMORY_PER_ACCOUNT_MIB * mib, ofAll: env.MEMORY_FOR_CLIENTS_MIB * mib },
    databaseUrl: env.DATABASE_URL,
    redisUrl: env.REDIS_URL,
    /** Keys for session tokens. The first key signs, and all keys verify. */
    jwtSecrets: env.JWT_SECRET ?? [],
    /** Keys for decrypting secrets and environment variables. Empty in an API without SECRETS_KEY. */
    secretsKeys,
    secretsPublicKey: env.SECRETS_PUBLIC_KEY ?? publicKeyOf(secretsKeys[0]!),
    /** Keys for RPC and stored command lines. The first key seals, and all keys can open. */
    rpcKeys: env.RPC_KEY ?? secretsKeys.map(rpcKeyOf),
    driver: env.SANDBOX_DRIVER,
    ...driver,
    local: {
      directory: resolve(env.SANDBOX_LOCAL_DIR),
      bwrap: env.SANDBOX_LOCAL_BWRAP,
    },
    pools: readPools(env, env.SANDBOX_IMAGE),
    quotas: { concurrent: env.QUOTA_CONCURRENT_SANDBOXES, hoursPerMonth: env.QUOTA_SANDBOX_HOURS_PER_MONTH },
    rates: {
      sandbox_ops: env.RATE_SANDBOX_OPS_PER_MINUTE,
      sandbox_lifecycle: env.RATE_SANDBOX_LIFECYCLE_PER_MINUTE,
      connections: env.RATE_CONNECTIONS_PER_MINUTE,
      signup: env.RATE_SIGNUP_PER_MINUTE,
      login: env.RATE_LOGIN_PER_MINUTE,
      login_account: env.RATE_LOGIN_ACCOUNT_PER_MINUTE,
      mcp: env.RATE_MCP_PER_MINUTE,
      reads: env.RATE_READS_PER_MINUTE,
      changes: env.RATE_CHANGES_PER_MINUTE,
    },
    trustedProxies: env.TRUSTED_PROXIES,
    password: { logN: env.PASSWORD_SCRYPT_LOG_N, atOnce: env.PASSWORD_HASH_CONCURRENCY },
    recordDays: env.SANDBOX_RECORD_DAYS,
    reconcileIntervalSeconds: env.RECONCILE_INTERVAL_SECONDS,
    livenessTimeouts: livenessTimeoutsOf(env.WORKER_LIVENESS_TIMEOUT_SECONDS),
    drainSeconds: env.DRAIN_SECONDS ?? (role === 'api' ? 12 : 20),
    shutdownDelaySeconds: env.SHUTDOWN_DELAY_SECONDS,
    stallSeconds: env.EVENT_LOOP_STALL_SECONDS,
    clientStallSeconds: env.CLIENT_STALL_SECONDS,
  }
}

function driverSettings(env: Omit<EnvironmentValues, 'DATABASE_URL' | 'REDIS_URL'>) {
  return {
    kubernetes: {
      kubeconfig: env.KUBECONFIG,
      namespace: env.SANDBOX_NAMESPACE,
      policies: env.SANDBOX_NETWORK_POLICIES ?? [],
    },
    sandbox: {
      image: env.SANDBOX_IMAGE,
      images: [...new Set([env.SANDBOX_IMAGE, ...(env.SANDBOX_IMAGES ?? [])])],
      limits: { cpu: env.SANDBOX_CPU, memory: env.SANDBOX_MEMORY, disk: env.SANDBOX_DISK },
      requests: {
        cpu: env.SANDBOX_CPU_REQUEST,
        memory: env.SANDBOX_MEMORY_REQUEST,
        disk: env.SANDBOX_DISK_REQUEST,
      },
      pids: env.SANDBOX_PIDS,
      inodes: env.SANDBOX_INODES,
      runtimeClass: env.SANDBOX_RUNTIME_CLASS,
      hostUsers: env.SANDBOX_HOST_USERS === 'yes',
      placement: {
        nodeSelector: env.SANDBOX_NODE_SELECTOR,
        tolerations: env.SANDBOX_TOLERATIONS ?? [],
        affinity: env.SANDBOX_AFFINITY,
        priorityClassName: env.SANDBOX_PRIORITY_CLASS,
      },
      imagePullSecrets: env.SANDBOX_IMAGE_PULL_SECRETS ?? [],
      /** Without egress, the DNS server is a loopback address, so that lookups fail immediately. */
      dnsServers:
        env.SANDBOX_DNS ?? (env.SANDBOX_EGRESS === 'internet' ? ['1.1.1.1', '8.8.8.8'] : ['127.0.0.1']),
      maxSeconds: env.SANDBOX_MAX_SECONDS,
      startSeconds: env.SANDBOX_START_SECONDS,
      egress: env.SANDBOX_EGRESS,
    },
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

const describeMissing = (name: string) => `  ${name}: is not set and has no default`

const describeProblems = (lines: string[]) =>
  `Some settings are missing or invalid:\n${[...new Set(lines)].join('\n')}\nSee docs/settings.md for all settings.`
