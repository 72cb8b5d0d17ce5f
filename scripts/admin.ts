/**
 * `npm run admin`: what an operator does to accounts, and sees of keys. It needs the database alone, or Redis alone:
 * DATABASE_URL or REDIS_URL, else those that `npm start` runs in this folder. docs/hosting.md has a table of it.
 */
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { pino } from 'pino'
import {
  listAccounts,
  removeAccount,
  resetPasswordOf,
  revokeSessionsOf,
  suspendAccount,
  unsuspendAccount,
} from '../api/admin/accounts.ts'
import { listKeys } from '../api/admin/keys.ts'
import { changeLimits, limitNames, readLimits, showLimits } from '../api/admin/limits.ts'
import type { Report } from '../api/admin/report.ts'
import { normaliseEmail } from '../shared/contract/auth.ts'
import { findAccountByEmail } from '../shared/data/accounts.ts'
import { type Database, openDatabase } from '../shared/data/database.ts'
import { connectRedis } from '../shared/platform/redis.ts'
import { findDatabase, findPasswordCost, findRedis, makeKeys, showPublicKey } from './admin/environment.ts'

const usage = `Usage: npm run admin -- [--json] COMMAND

  accounts                 every account with its sandboxes, its hours of the month and its own limits
  limits EMAIL             the account's own limits; with options, sets them ("default" takes one back)
    --concurrent N           sandboxes at once
    --hours H                sandbox-hours a month
    --seconds S              the longest life of one sandbox
    --sandbox-ops N          commands and files a minute
    --sandbox-lifecycle N    creates and destroys a minute
    --reset                  takes all of them back
  end-sessions EMAIL       ends its sessions: whoever has a session token logs in again
  reset-password EMAIL     gives it a new password, which is printed once, and ends its sessions
  suspend EMAIL            ends its sandboxes, refuses its keys and its logins
  unsuspend EMAIL          undoes that, but for the sandboxes
  delete EMAIL --yes       suspends it, then removes everything that it has when its last pod is gone
  keys                     which process holds which keys, by fingerprint: it needs Redis alone
  make-keys                the four keys of a new installation, for its Secret: it needs no database
  public-key               the keys that an API is given in place of SECRETS_KEY: it needs no database

--json prints one JSON object, errors too.`

type Account = { id: string; email: string }
type Values = ReturnType<typeof parse>['values']

const ofAccount: Record<string, (db: Database, account: Account, values: Values) => Promise<Report>> = {
  async limits(db, account, values) {
    const changes = readLimits(values)
    if (Object.keys(changes).length > 0) await changeLimits(db, account.id, changes)
    return await showLimits(db, account)
  },
  'end-sessions': revokeSessionsOf,
  'reset-password': (db, account) => resetPasswordOf(db, account, findPasswordCost()),
  suspend: suspendAccount,
  unsuspend: unsuspendAccount,
  async delete(db, account, { yes }) {
    if (!yes) throw new Refusal(`This cannot be undone: add --yes to delete ${account.email}.`, 2)
    return await removeAccount(db, account, (line) => console.error(line))
  },
}
const withoutAccount = ['accounts', 'keys', 'make-keys', 'public-key']
/** The options that each takes beside --json. */
const optionsOf: Record<string, readonly string[]> = { limits: [...limitNames, 'reset'], delete: ['yes'] }

/** A message for the terminal, with exit code 1. */
class Refusal extends Error {
  readonly code: number
  readonly help: string

  /** @param help printed below it */
  constructor(message: string, code = 1, help = '') {
    super(message)
    this.code = code
    this.help = help
  }
}

const wrongUsage = (message: string) => new Refusal(message, 2, `\n${usage}`)

async function run(args: string[]): Promise<Report> {
  const { positionals, values } = parse(args)
  const [command, ...operands] = positionals
  if (command === undefined) throw wrongUsage('A command is missing.')
  const act = Object.hasOwn(ofAccount, command) ? ofAccount[command] : undefined
  if (!act && !withoutAccount.includes(command)) throw wrongUsage(`There is no admin command ${command}.`)
  if (operands.length !== (act ? 1 : 0))
    throw wrongUsage(`${command} takes ${act ? 'the EMAIL of one account' : 'no EMAIL'}.`)
  const wrong = Object.keys(values).find((name) => name !== 'json' && !optionsOf[command]?.includes(name))
  if (wrong) throw wrongUsage(`--${wrong} does not go with ${command}.`)

  if (command === 'make-keys') return makeKeys()
  if (command === 'public-key') return showPublicKey()
  if (command === 'keys') return await showKeys()
  const db = openDatabase(findDatabase(), { connections: 2 })
  try {
    return act ? await act(db, await findAccount(db, operands[0]!), values) : await listAccounts(db)
  } finally {
    await db.close()
  }
}

async function showKeys(): Promise<Report> {
  const redis = connectRedis(findRedis(), 'fail-fast', pino({ level: 'silent' }))
  try {
    await once(redis, 'ready')
    return await listKeys(redis)
  } finally {
    redis.disconnect()
  }
}

async function findAccount(db: Database, given: string): Promise<Account> {
  const email = normaliseEmail(given)
  const account = await findAccountByEmail(db, email)
  if (!account) throw new Refusal(`There is no account ${email}.`)
  return { id: account.id, email }
}

function parse(args: string[]) {
  const text = { type: 'string' } as const
  const options = {
    ...(Object.fromEntries(limitNames.map((name) => [name, text])) as Record<
      (typeof limitNames)[number],
      typeof text
    >),
    reset: { type: 'boolean' },
    yes: { type: 'boolean' },
    json: { type: 'boolean' },
  } as const
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    throw wrongUsage((error as Error).message)
  }
}

const args = process.argv.slice(2)
const wantsJson = args.includes('--json')
try {
  const { value, text } = await run(args)
  console.log(wantsJson ? JSON.stringify(value) : text)
} catch (error) {
  const { message } = error as Error
  const { code, help } = error instanceof Refusal ? error : { code: 1, help: '' }
  console.error(`${message}${help && `\n${help}`}`)
  if (wantsJson) console.log(JSON.stringify({ error: { message, exit_code: code } }))
  process.exitCode = code
}
