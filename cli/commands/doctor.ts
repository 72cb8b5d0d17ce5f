import { existsSync } from 'node:fs'
import { shellLine } from '../../shared/contract/shell-words.ts'
import type { Reply } from '../core/api.ts'
import { type Checks, startChecks } from '../core/checks.ts'
import { defineCommand, type Invocation } from '../core/command.ts'
import { CliError, exitCodes } from '../core/errors.ts'
import { destinationOf, maskKey, placeOfKey } from '../core/saved-keys.ts'
import type { Settings } from '../core/settings.ts'
import { version } from '../core/version.ts'

export const define = defineCommand<{ create: boolean }>({
  declare: (command) => command.option('--no-create', 'skip the checks that create a session'),
  notes: `
Checks the settings, the connection, the key and the clock. Then it creates a session, runs a command in it, writes and
reads a file, and always destroys the session. Exits with code 0, or with the code of the first check that failed.`,
  examples: ['sandlot doctor', 'sandlot doctor --no-create --json'],
  fields: ['name', 'ok', 'detail', 'ms', 'next'],
  list: 'checks',
  handle: async (invocation) => {
    const { options, api, output, exitWith } = invocation
    const checks = startChecks((text) => output.json || output.result(undefined, `${text}\n`))
    const reached = await checkService(invocation, checks)
    if (reached && options.create) {
      const { checkSession } = await import('../doctor/session.ts')
      await checkSession(checks, api)
    }
    const exitCode = checks.exitCode()
    output.result({ ok: exitCode === exitCodes.done, version, checks: checks.done }, '')
    exitWith(exitCode)
  },
})

/** Runs the checks that do not require a session. Returns whether the service accepts requests. */
async function checkService(invocation: Invocation<object>, checks: Checks): Promise<boolean> {
  if (!(await checkSettings(invocation, checks))) return false
  const { settings, api } = invocation
  const { checkConnectivity } = await import('../doctor/connectivity.ts')
  if (!(await checkConnectivity(checks, await settings.baseUrl(), settings.proxy()))) return false
  const isSandlot = await checks.check('service', async () => {
    const { info } = await api.call('getOpenApi', {})
    const { title, version: served } = info as { title: string; version: string }
    return `${title} version ${served}; this is sandlot ${version}`
  })
  return isSandlot && (await checkKey(invocation, checks))
}

async function checkSettings({ settings }: Invocation<object>, { check }: Checks): Promise<boolean> {
  const results = [
    await check('settings', () => describeFile(settings)),
    await check('address', async () => {
      const url = await settings.baseUrl()
      return `${url}, from ${(await settings.find('url'))!.source}`
    }),
    await check('key', () => describeKeys(settings)),
  ]
  // The other checks work without the file.
  return results.slice(1).every((ok) => ok)
}

async function describeFile(settings: Settings): Promise<string> {
  const { file, location } = settings
  if (await settings.isExposed()) {
    throw new CliError('failed', `Other users of this machine can read the key in ${file}.`, {
      hint: shellLine('chmod', '600', file),
    })
  }
  return existsSync(file) ? location : `${file} does not exist`
}

async function describeKeys(settings: Settings): Promise<string> {
  const address = await settings.baseUrl()
  await settings.apiKey(address)
  const { value, source } = (await settings.findKey(address))!
  const { file } = settings
  // The settings check reports a broken file.
  const saved = await settings.savedKeys().catch(() => [])
  const others = saved.filter((key) => placeOfKey(key, file) !== source)
  const lines = others.map((key) => destinationOf(key, file))
  return [`${maskKey(value)} (${source}) is sent to ${address}`, ...lines].join('\n')
}

async function checkKey({ api }: Invocation<object>, { check }: Checks): Promise<boolean> {
  let date: string | undefined
  let middle = 0
  const isGood = await check('account', async () => {
    const started = Date.now()
    const { response } = await api.open('getAccount', {})
    middle = (started + Date.now()) / 2
    date = response.headers.date
    const { json } = await import('node:stream/consumers')
    const { email, api_key, concurrent, usage } = (await json(response)) as Reply<'getAccount'>
    const key = api_key?.scope === 'run' ? 'a key of scope run, ' : ''
    return `${email}, ${key}${concurrent.active}/${concurrent.limit} sandboxes, ${usage.sandbox_hours.toFixed(2)}/${usage.limit} hours`
  })
  if (!isGood) return false
  await check('clock', () => describeSkew(date, middle))
  return true
}

function describeSkew(date: string | undefined, now: number): string {
  // The header has whole seconds, so on average it is half a second behind.
  const ahead = now - (Date.parse(date ?? '') + 500)
  if (Number.isNaN(ahead)) return 'the service sends no Date header'
  if (Math.abs(ahead) <= 30_000) return 'this machine and the service agree'
  const words = `${Math.round(Math.abs(ahead) / 1000)} s ${ahead > 0 ? 'ahead of' : 'behind'}`
  throw new CliError('failed', `This machine's clock is ${words} the service's clock.`, {
    hint: 'Synchronize the clock, preferably with NTP. Until then, displayed times are wrong.',
  })
}
