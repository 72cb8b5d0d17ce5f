/** Reads the settings for `npm start` from flags, the environment and .env. Generates missing keys. */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import * as z from 'zod'
import { keysFor } from '../../shared/platform/keys.ts'
import { settingGroups } from '../../shared/platform/settings-schema.ts'
import { compileCache, readDotEnv, root } from '../root.mjs'

const defaults = z.object(settingGroups.Addresses).parse({})

export interface FoundServices {
  databaseUrl: string
  redisUrl: string
  bwrap: string | undefined
}

/**
 * @param args for example `--workers 3` or `--apis 2`
 * @throws a user-facing error if an argument or a setting is invalid
 */
export function readStackSettings(args: string[], dataFolder: string) {
  readDotEnv()
  const { values } = parseArgs({ args, options: { workers: { type: 'string' }, apis: { type: 'string' } } })
  const env = process.env
  return {
    host: env.HOST || defaults.HOST,
    internalHost: env.INTERNAL_HOST || defaults.INTERNAL_HOST,
    ports: { PORT: port('PORT'), INTERNAL_PORT: port('INTERNAL_PORT'), RPC_PORT: port('RPC_PORT') },
    /** Number of processes for each name in the Procfile. The default is one. */
    counts: new Map([
      ['worker', whole('WORKERS', values.workers ?? (env.WORKERS || '1'), 100)],
      ['api', whole('APIS', values.apis ?? (env.APIS || '1'), 100)],
    ]),
    databaseUrl: env.DATABASE_URL || undefined,
    redisUrl: env.REDIS_URL || undefined,
    driver: env.SANDBOX_DRIVER || 'local',
    localDirectory: resolve(root, env.SANDBOX_LOCAL_DIR || join(dataFolder, 'sandboxes')),
    bwrap: env.SANDBOX_LOCAL_BWRAP || undefined,
    production: env.NODE_ENV === 'production',
  }
}

export type StackSettings = ReturnType<typeof readStackSettings>

function port(setting: 'PORT' | 'INTERNAL_PORT' | 'RPC_PORT') {
  const text = process.env[setting]
  return { first: whole(setting, text || defaults[setting], 65_535), isSet: Boolean(text) }
}

function whole(name: string, text: string | number, max: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 0 && value <= max) return value
  throw new Error(`${name} must be a whole number from 0 to ${max}, not "${text}".`)
}

export const secretFile = (name: 'JWT_SECRET' | 'SECRETS_KEY', dataFolder: string): string =>
  join(dataFolder, name.toLowerCase().replace('_', '-'))

/** Returns the configured key, or a generated key from a file that only its owner can read. */
function keepSecret(name: 'JWT_SECRET' | 'SECRETS_KEY', dataFolder: string): string {
  const given = process.env[name]
  if (given) return given
  const file = secretFile(name, dataFolder)
  if (!existsSync(file)) {
    const fresh = `${file}.new`
    writeFileSync(fresh, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600 })
    renameSync(fresh, file)
  }
  return readFileSync(file, 'utf8').trim()
}

/** Returns the environment variables that contain a process's keys. Only workers receive KUBECONFIG. */
export function keyEnvironment(kind: string, dataFolder: string): Record<string, string | undefined> {
  if (kind !== 'api' && kind !== 'worker') return {}
  const keys = keysFor(kind, {
    JWT_SECRET: keepSecret('JWT_SECRET', dataFolder),
    SECRETS_KEY: keepSecret('SECRETS_KEY', dataFolder),
    RPC_KEY: process.env.RPC_KEY || undefined,
  })
  return kind === 'worker' ? { ...keys, KUBECONFIG: process.env.KUBECONFIG } : keys
}

/** Returns the environment variables that all processes share. Keys and ports are not included. */
export function childEnvironment(
  settings: StackSettings,
  { databaseUrl, redisUrl, bwrap }: FoundServices,
): Record<string, string | undefined> {
  return {
    ...process.env,
    KUBECONFIG: undefined,
    // Makes `node` in the Procfile the Node that runs this script.
    PATH: [dirname(process.execPath), join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter),
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? compileCache,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    // Each kind of process receives different keys. Migrations receive none.
    JWT_SECRET: undefined,
    SECRETS_KEY: undefined,
    SECRETS_PUBLIC_KEY: undefined,
    RPC_KEY: undefined,
    SANDBOX_DRIVER: settings.driver,
    SANDBOX_LOCAL_DIR: settings.localDirectory,
    SANDBOX_LOCAL_BWRAP: bwrap,
    HOST: settings.host,
    INTERNAL_HOST: settings.internalHost,
  }
}
