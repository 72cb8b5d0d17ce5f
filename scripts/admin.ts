/**
 * `npm run admin`: what an operator does to accounts. It needs the database alone: DATABASE_URL, else
 * the one that `npm start` runs in this folder. docs/hosting.md has a table of it.
 */
import { parseArgs } from 'node:util'
import {
  endSessionsOf,
  listAccounts,
  removeAccount,
  suspendAccount,
  unsuspendAccount,
} from '../api/admin/accounts.ts'
import { changeLimits, limitNames, readLimits, showLimits } from '../api/admin/limits.ts'
import { normaliseEmail } from '../shared/contract/auth.ts'
import { type Database, openDatabase } from '../shared/data/database.ts'
import { findDatabase, showPublicKey } from './admin/environment.ts'

const usage = `Usage: npm run admin -- COMMAND

  accounts                 every account with its sandboxes, its hours of the month and its own limits
  limits EMAIL             the account's own limits; with options, sets them ("default" takes one back)
    --concurrent N           sandboxes at once
    --hours H                sandbox-hours a month
    --seconds S              the longest life of one sandbox
    --sandbox-ops N          commands and files a minute
    --sandbox-lifecycle N    creates and destroys a minute
    --reset                  takes all of them back
  end-sessions EMAIL       ends its sessions: whoever has a session token logs in again
  suspend EMAIL            ends its sandboxes, refuses its keys and its logins
  unsuspend EMAIL          undoes that, but for the sandboxes
  delete EMAIL --yes       suspends it, then removes everything that it has when its last pod is gone
  public-key               the keys that an API is given in place of SECRETS_KEY: it needs no database`

/** A message for the terminal, with exit code 1, or 2 for wrong usage. */
class Refusal extends Error {
  readonly code: number
  constructor(message: string, code = 1) {
    super(message)
    this.code = code
  }
}

/** @returns what to print */
async function run(args: string[]): Promise<string> {
  const { positionals, values } = parse(args)
  const [command, email, ...more] = positionals
  const needsEmail = command !== 'accounts' && command !== 'public-key'
  if (!command || more.length > 0 || needsEmail !== (email !== undefined)) throw new Refusal(usage, 2)
  const given = Object.keys(values)
  const takes = command === 'limits' ? [...limitNames, 'reset'] : command === 'delete' ? ['yes'] : []
  const wrong = given.find((name) => !takes.includes(name))
  if (wrong) throw new Refusal(`--${wrong} does not go with ${command}.\n\n${usage}`, 2)

  if (command === 'public-key') return showPublicKey()
  const db = openDatabase(findDatabase(), { connections: 2 })
  try {
    return await act(db, command, email ?? '', values)
  } finally {
    await db.close()
  }
}

type Values = ReturnType<typeof parse>['values']

async function act(db: Database, command: string, given: string, values: Values): Promise<string> {
  if (command === 'accounts') return await listAccounts(db)
  const account = await findAccount(db, given)
  switch (command) {
    case 'limits':
      if (Object.keys(values).length > 0) await changeLimits(db, account.id, readLimits(values))
      return await showLimits(db, account.id)
    case 'end-sessions':
      return await endSessionsOf(db, account)
    case 'suspend':
      return await suspendAccount(db, account)
    case 'unsuspend':
      return await unsuspendAccount(db, account)
    case 'delete':
      if (!values.yes) throw new Refusal(`This cannot be undone: add --yes to delete ${account.email}.`, 2)
      return await removeAccount(db, account, (line) => console.error(line))
    default:
      throw new Refusal(usage, 2)
  }
}

async function findAccount(db: Database, given: string): Promise<{ id: string; email: string }> {
  const email = normaliseEmail(given)
  const [account] = await db.query<{ id: string; email: string }>(
    'select id, email from account where email = ?',
    [email],
  )
  if (!account) throw new Refusal(`There is no account ${email}.`)
  return account
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
  } as const
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    throw new Refusal(`${(error as Error).message}\n\n${usage}`, 2)
  }
}

try {
  console.log(await run(process.argv.slice(2)))
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = error instanceof Refusal ? error.code : 1
}
