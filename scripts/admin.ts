/**
 * `npm run admin`: operator commands for accounts and keys. docs/hosting.md describes the commands.
 * Without DATABASE_URL and REDIS_URL, the commands use the servers that `npm start` runs in this folder.
 */
import { once } from 'node:events'
import { basename } from 'node:path'
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
import { showReadiness } from '../api/admin/readiness.ts'
import type { Report } from '../api/admin/report.ts'
import { normaliseEmail } from '../shared/contract/auth.ts'
import { findAccountByEmail } from '../shared/data/accounts.ts'
import { type Database, openDatabase } from '../shared/data/database.ts'
import { connectRedis } from '../shared/platform/redis.ts'
import {
  findDatabase,
  findInternalServer,
  findPasswordCost,
  findRedis,
  makeKeys,
  showPublicKey,
} from './admin/environment.ts'

/**
 * Name of this program in help texts. The server image has no npm, so its users start the program with a
 * different command.
 */
const program = basename(process.argv[1] ?? '') === 'admin.ts' ? 'npm run admin --' : 'sandlot-server admin'

const usage = `Usage: ${program} [--json] COMMAND

  accounts                 lists all accounts with their sandboxes, hours this month and individual limits
  limits EMAIL             shows or sets an account's limits ("default" removes a limit)
    --concurrent N           concurrent sandboxes
    --hours H                sandbox-hours per month
    --seconds S              maximum lifetime of a sandbox
    --sandbox-ops N          commands and file operations per minute
    --sandbox-lifecycle N    requests that create or destroy sandboxes, per minute
    --reset                  removes all individual limits
  end-sessions EMAIL       revokes the account's session tokens, so that the user must log in again
  reset-password EMAIL     sets and prints a new password, and revokes the account's session tokens
  suspend EMAIL            destroys the account's sandboxes, and disables its API keys and logins
  unsuspend EMAIL          enables the account's API keys and logins again
  delete EMAIL --yes       suspends the account, and deletes all its data once its last pod is gone
  ready                    prints the /readyz response of this container's process; exits with status 1 if it is not ready
  keys                     lists the key fingerprints of each process (needs only Redis)
  make-keys                generates the four keys of a new installation (needs no database)
  public-key               prints the keys that the API uses instead of SECRETS_KEY (needs no database)

--json prints one JSON object, even for an error.`

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
    if (!yes)
      throw new Refusal(`Deleting ${account.email} cannot be undone. Add --yes to delete the account.`, 2)
    return await removeAccount(db, account, (line) => console.error(line))
  },
}
const withoutAccount = ['accounts', 'ready', 'keys', 'make-keys', 'public-key']
const optionsOf: Record<string, readonly string[]> = { limits: [...limitNames, 'reset'], delete: ['yes'] }

/** A user-facing error. `help` is printed after the message, and `code` is the exit status. */
class Refusal extends Error {
  readonly code: number
  readonly help: string

  constructor(message: string, code = 1, help = '') {
    super(message)
    this.code = code
    this.help = help
  }
}

const wrongUsage = (message: string) => new Refusal(message, 2, `\n${usage}`)

async function run(args: string[]): Promise<Report> {
  const { positionals, values } = parse(args)
  if (values.help) return { value: { usage }, text: usage }
  const [command, ...operands] = positionals
  if (command === undefined) throw wrongUsage('A command is missing.')
  const act = Object.hasOwn(ofAccount, command) ? ofAccount[command] : undefined
  if (!act && !withoutAccount.includes(command)) throw wrongUsage(`Unknown admin command ${command}.`)
  if (operands.length !== (act ? 1 : 0))
    throw wrongUsage(
      act ? `${command} requires the EMAIL of one account.` : `${command} does not accept an EMAIL.`,
    )
  const wrong = Object.keys(values).find((name) => name !== 'json' && !optionsOf[command]?.includes(name))
  if (wrong) throw wrongUsage(`${command} has no option --${wrong}.`)

  if (command === 'ready') return await showReadiness(findInternalServer())
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
  if (!account) throw new Refusal(`No account exists for ${email}.`)
  return { id: account.id, email }
}

function parse(args: string[]) {
  const text = { type: 'string' } as const
  const limits = Object.fromEntries(limitNames.map((name) => [name, text]))
  const options = {
    ...(limits as Record<(typeof limitNames)[number], typeof text>),
    reset: { type: 'boolean' },
    yes: { type: 'boolean' },
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
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
  const { value, text, exitCode = 0 } = await run(args)
  console.log(wantsJson ? JSON.stringify(value) : text)
  process.exitCode = exitCode
} catch (error) {
  const { message } = error as Error
  const { code, help } = error instanceof Refusal ? error : { code: 1, help: '' }
  console.error(`${message}${help && `\n${help}`}`)
  if (wantsJson) console.log(JSON.stringify({ error: { message, exit_code: code } }))
  process.exitCode = code
}
