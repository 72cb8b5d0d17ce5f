/**
 * The settings of a process, which are read from the environment and validated once. No other code of the services
 * reads `process.env`. The client and the scripts have their own settings.
 */
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

/** Reads the cost of password hashes, for a program that needs no other setting. */
export const readPasswordCost = (environment: Record<string, string | undefined>): number =>
  check(Environment.pick({ PASSWORD_SCRYPT_LOG_N: true }), environment).PASSWORD_SCRYPT_LOG_N

const mib = 1024 * 1024

export type Role = 'api' | 'worker'

type EnvironmentValues = z.output<typeof Environment>

/** Returns the names of required keys that are not set. The API seals and signs, and a worker opens. */
function missingKeys(role: Role, env: EnvironmentValues): (keyof EnvironmentValues)[] {
  const needed: (keyof EnvironmentValues)[] =
    role === 'worker'
      ? ['SECRETS_KEY']
      : ['JWT_SECRET', ...(env.SECRETS_KEY ? [] : (['SECRETS_PUBLIC_KEY', 'RPC_KEY'] as const))]
  return needed.filter((name) => env[name] === undefined)
}

/** Reads only the settings of a driver, which need neither databases nor keys. */
export const readDriverSettings = (environment: Record<string, string | undefined>) =>
  driverSettings(check(Environment.omit({ DATABASE_URL: true, REDIS_URL: true }), environment))

/**
 * Reads the settings of an API or worker process.
 * @param environment usually `process.env`
 * @param role determines the required keys
 * @throws {SettingsError} names all missing and wrong settings, and never includes a value
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
    /** Host names that the API accepts in addition to its own address and the loopback addresses. */
    allowedHosts: env.ALLOWED_HOSTS,
    internal: { host: env.INTERNAL_HOST, port: env.INTERNAL_PORT },
    calls: { host: env.INTERNAL_HOST, port: env.RPC_PORT },
    /** The memory budget in bytes, for one account and for all. */
    memory: { ofAccount: env.MEMORY_PER_ACCOUNT_MIB * mib, ofAll: env.MEMORY_FOR_CLIENTS_MIB * mib },
    databaseUrl: env.DATABASE_URL,
    redisUrl: env.REDIS_URL,
    /** The first signs, all verify. */
    jwtSecrets: env.JWT_SECRET ?? [],
    /** They open sealed texts. An API needs none. */
    secretsKeys,
    secretsPublicKey: env.SECRETS_PUBLIC_KEY ?? publicKeyOf(secretsKeys[0]!),
    /** The first seals, all open. API and workers authenticate each other with them. */
    rpcKeys: env.RPC_KEY ?? secretsKeys.map(rpcKeyOf),
    driver: env.SANDBOX_DRIVER,
    ...driver,
    local: {
      directory: resolve(env.SANDBOX_LOCAL_DIR),
      bwrap: env.SANDBOX_LOCAL_BWRAP,
    },
    /** The sizes of the warm pools, by image. */
    pools: readPools(env, env.SANDBOX_IMAGE),
    quotas: { concurrent: env.QUOTA_CONCURRENT_SANDBOXES, hoursPerMonth: env.QUOTA_SANDBOX_HOURS_PER_MONTH },
    /** Tokens per minute, by bucket. */
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
    /** Addresses and CIDR ranges whose X-Forwarded-For is trusted. */
    trustedProxies: env.TRUSTED_PROXIES,
    password: { logN: env.PASSWORD_SCRYPT_LOG_N, atOnce: env.PASSWORD_HASH_CONCURRENCY },
    /** Days for which rows of ended sandboxes are kept. */
    recordDays: env.SANDBOX_RECORD_DAYS,
    reconcileIntervalSeconds: env.RECONCILE_INTERVAL_SECONDS,
    livenessTimeouts: livenessTimeoutsOf(env.WORKER_LIVENESS_TIMEOUT_SECONDS),
    /** Seconds that a stopping process has to finish its work. */
    drainSeconds: env.DRAIN_SECONDS ?? (role === 'api' ? 12 : 20),
    /** Seconds before those, during which an API still accepts requests. */
    shutdownDelaySeconds: env.SHUTDOWN_DELAY_SECONDS,
    /** Seconds of an event-loop stall after which a process exits; 0 disables this. */
    stallSeconds: env.EVENT_LOOP_STALL_SECONDS,
    /** Seconds after which a connection is closed if the client reads no pending bytes. */
    clientStallSeconds: env.CLIENT_STALL_SECONDS,
  }
}

function driverSettings(env: Omit<EnvironmentValues, 'DATABASE_URL' | 'REDIS_URL'>) {
  return {
    kubernetes: {
      kubeconfig: env.KUBECONFIG,
      namespace: env.SANDBOX_NAMESPACE,
      /** Names of network policies that are not checked. */
      policies: env.SANDBOX_NETWORK_POLICIES ?? [],
    },
    sandbox: {
      image: env.SANDBOX_IMAGE,
      /** Images that clients may choose, including the default one. */
      images: [...new Set([env.SANDBOX_IMAGE, ...(env.SANDBOX_IMAGES ?? [])])],
      limits: { cpu: env.SANDBOX_CPU, memory: env.SANDBOX_MEMORY, disk: env.SANDBOX_DISK },
      requests: {
        cpu: env.SANDBOX_CPU_REQUEST,
        memory: env.SANDBOX_MEMORY_REQUEST,
        disk: env.SANDBOX_DISK_REQUEST,
      },
      pids: env.SANDBOX_PIDS,
      /** Files and folders. On Kubernetes, the settings of the nodes limit them. */
      inodes: env.SANDBOX_INODES,
      runtimeClass: env.SANDBOX_RUNTIME_CLASS,
      /** Whether pods share the user ids of their node. */
      hostUsers: env.SANDBOX_HOST_USERS === 'yes',
      /** Fields of the pods on Kubernetes. */
      placement: {
        nodeSelector: env.SANDBOX_NODE_SELECTOR,
        tolerations: env.SANDBOX_TOLERATIONS ?? [],
        affinity: env.SANDBOX_AFFINITY,
        priorityClassName: env.SANDBOX_PRIORITY_CLASS,
      },
      /** Names of Secrets in the namespace of the pods. */
      imagePullSecrets: env.SANDBOX_IMAGE_PULL_SECRETS ?? [],
      /** Without public DNS servers, the resolver is a loopback address, so that lookups fail at once instead of hanging. */
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

const describeMissing = (name: string) => `  ${name}: is not set, and has no default`

const describeProblems = (lines: string[]) =>
  `Some settings are missing or wrong:\n${[...new Set(lines)].join('\n')}\ndocs/settings.md lists all of them.`
