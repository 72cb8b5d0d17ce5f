/** Operations on the settings file for ../support/pairs.ts. */
import { readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { parse, stringify } from 'smol-toml'
import { newSandboxId } from '../../shared/data/ids.ts'
import type { Account } from '../support/account.ts'
import { eventually } from '../support/eventually.ts'
import type { Kind } from '../support/pairs.ts'
import type { World } from '../support/world.ts'
import { clientPath, Home } from './client.ts'
import { openScreen, type Screen } from './screen.ts'

interface Place {
  home: Home
  alice: Account
  sandboxId: string
}

const key = `sandlot_live_${'x'.repeat(49)}`
const hourMs = 3_600_000

export const settingsFile = (world: World): Kind<Place> => ({
  async make() {
    const alice = await world.account()
    const home = new Home()
    const { key: api_key, token } = alice
    const token_expires_at = new Date(Date.now() + hourMs).toISOString()
    home.writeConfig(
      stringify({ base_url: world.url(), api_key, token, token_expires_at, session: 'sbx_old' }),
    )
    return { home, alice, sandboxId: await addSandbox(world, alice) }
  },
  isTried: ([one, other]) =>
    one !== other && ![one, other].some((name) => isApart(name, name === one ? other : one)),
  operations: {
    'set-url': run(['config', 'set-url', 'http://127.0.0.1:2'], ({ base_url }) => base_url),
    'set-key': run(['config', 'set-key', key], ({ base_url }) => base_url),
    'set-key for an address': run(
      ['config', 'set-key', key, '--url', 'http://127.0.0.1:3'],
      ({ base_url }) => base_url,
    ),
    'set-url of a profile': run(
      ['config', 'set-url', 'http://127.0.0.1:4', '--profile', 'other'],
      ({ base_url }) => base_url,
    ),
    use: run(
      ({ sandboxId }) => ['session', 'use', sandboxId],
      ({ id }) => id,
    ),
    logout: run(['logout'], ({ logged_out, api_key }, { alice }) => [
      logged_out,
      api_key &&
        (api_key.last_four === alice.key.slice(-4)
          ? 'alice'
          : api_key.last_four === key.slice(-4)
            ? 'set'
            : 'made'),
    ]),
    login: run(
      ({ alice }) => ['login', '--email', alice.email, '--password-stdin'],
      ({ account, api_key }) => [account.id, api_key && 'made'],
    ),
  },
  async readState({ home, alice }) {
    const { api_key, token, token_expires_at, ...rest } = parse(readFileSync(home.configFile, 'utf8'))
    const files = readdirSync(home.configFolder)
    const hasLogin = token !== undefined && token_expires_at !== undefined
    return { ...rest, api_key: nameOf(api_key, alice.key), hasLogin, files }
  },
  /** Releases the lock when both clients have read the file and wait to write. */
  async together({ home }, begin) {
    const lock = `${home.configFile}.lock`
    writeFileSync(lock, 'held')
    // A lock with a future time never expires.
    utimesSync(lock, new Date(), new Date(Date.now() + hourMs))
    const running = begin()
    let ended = 0
    for (const each of running) void each.finally(() => ended++)
    const waiting = () =>
      readdirSync(home.configFolder).filter((name) => name.startsWith('config.toml.lock.'))
    await eventually(() => waiting().length + ended === running.length, 20_000)
    rmSync(lock)
    return await Promise.all(running)
  },
  end: async ({ home }) => home[Symbol.dispose](),
})

/** An open picker, and changes that another client may save first. */
export const pickersSettings = (world: World): Kind<Place & { screen: Screen }> => {
  const { operations, isTried: _, ...kind } = settingsFile(world)
  const { 'set-url': setUrl, 'set-key': setKey, login, logout } = operations
  const inPicker = 'use in the picker'
  return {
    ...kind,
    async make() {
      const place = await kind.make()
      const screen = openScreen([process.execPath, clientPath], place.home.environment())
      await screen.shows(/^›sbx_/m)
      return { ...place, screen }
    },
    operations: {
      [inPicker]: async ({ screen }: Place & { screen: Screen }) => {
        screen.type('u')
        // The request was rejected, or the next refresh found no usable session.
        const refused = /^! (?!Refused since|Service unavailable)|No sessions|Welcome to Sandlot/m
        const used = /^· sbx_\S+ is the current session/m
        await eventually(() => used.test(screen.text()) || refused.test(screen.text()), 20_000)
        return used.test(screen.text()) ? 'used' : 'refused'
      },
      'set-url': setUrl!,
      'set-key': setKey!,
      login: login!,
      logout: logout!,
    },
    isTried: (names) => names.includes(inPicker) && names[0] !== names[1],
    async end(place) {
      place.screen[Symbol.dispose]()
      await kind.end?.(place)
    },
  }
}

const isApart = (name: string, beside: string) =>
  // A login is saved for its initial address, even if the address changes during the login.
  (name === 'login' && beside === 'set-url') ||
  (name === 'set-key for an address' && !['set-url', 'set-key'].includes(beside)) ||
  (name === 'set-url of a profile' && beside !== 'set-url')

/** @param pick selects the part of the response that is the same in each run */
// biome-ignore lint/suspicious/noExplicitAny: the JSON of any command
function run(args: string[] | ((place: Place) => string[]), pick: (result: any, place: Place) => unknown) {
  return async (place: Place) => {
    const given = typeof args === 'function' ? args(place) : args
    const { code, json } = await place.home.run([...given, '--json'], { input: place.alice.password })
    return code === 0 ? pick(json(), place) : json().error.code
  }
}

const nameOf = (value: unknown, alice: string) => {
  if (value === alice) return 'alice'
  return value === undefined || value === key ? value : 'made'
}

async function addSandbox({ db }: World, { id }: Account): Promise<string> {
  const sandboxId = newSandboxId()
  await db.query(
    `insert into sandbox (id, account_id, image, pod_name, created_at, expires_at, max_expires_at)
     values (?, ?, 'any', 'sbx-' || gen_random_uuid(), sandlot_now(), sandlot_now() + interval '1 hour', sandlot_now() + interval '1 hour')`,
    [sandboxId, id],
  )
  return sandboxId
}
