import { Argument, Option } from 'commander'
import { stringify } from 'smol-toml'
import { routes } from '../../../shared/contract/routes.ts'
import { readAddress } from '../../core/address.ts'
import { defineCommand, type Invocation } from '../../core/command.ts'
import { CliError, exitCodes } from '../../core/errors.ts'
import type { Output } from '../../core/output.ts'
import type { Settings } from '../../core/settings.ts'
import { unifiedDiff } from '../../core/unified-diff.ts'
import {
  edit,
  entryFor,
  fileOf,
  findSpots,
  findTarget,
  isCurrent,
  read,
  type Spot,
  thisServer,
} from '../../mcp/entries.ts'
import { writeSettings } from '../../mcp/settings-file.ts'
import {
  isToml,
  type Server,
  type ServerEntry,
  scopes,
  sectionOf,
  type TargetScope,
  targets,
} from '../../mcp/targets.ts'

interface Options {
  scope: TargetScope
  name: string
  portable?: boolean
  http?: boolean
  dryRun?: boolean
  check?: boolean
  remove?: boolean
  print?: boolean
}

export const define = defineCommand<Options>({
  declare: (command) =>
    command
      .addArgument(new Argument('[target]', 'the client').choices(Object.keys(targets)))
      .addOption(
        new Option('--scope <scope>', 'edit the settings in this folder, or those of the user')
          .choices(scopes)
          .default('user'),
      )
      .option('--name <name>', 'the name of the server in the settings', 'sandlot')
      .option('--portable', 'write `sandlot` without its path, for a shared file')
      .option('--http', 'use the service at /v1/mcp instead of a local server')
      .option('--dry-run', 'print the change as a diff, without writing it')
      .option('--check', 'only check whether the entry exists and is current; exit with 0 or 1')
      .option('--remove', 'remove the entry')
      .option('--print', 'only print the entry'),
  notes: `
Without a target, lists the clients found on this machine. Comments, order and all other entries of a file
are preserved, and the previous file is kept as FILE.sandlot-backup. The API key is never written: the local server
reads the saved key, and with --http the client reads SANDLOT_API_KEY.`,
  examples: [
    'sandlot mcp init',
    'sandlot mcp init claude-code --scope project --portable',
    'sandlot mcp init cursor --dry-run',
    'sandlot mcp init codex --profile work',
  ],
  handle: async (invocation) => {
    const { args, options, settings, output, exitWith } = invocation
    const [target] = args
    if (target === undefined) return list(invocation)
    const { scope } = options
    const client = findTarget(target, scope)
    const file = fileOf(client, scope, settings.folders())
    const spot: Spot = { target, scope, file, name: readName(options.name) }
    const entry = options.remove ? undefined : entryFor(client, await chooseServer(settings, options))
    if (options.print) return print(output, spot, entry)
    if (options.check) return exitWith(await check(output, spot, entry))
    await write(invocation, spot, entry)
  },
})

async function print(output: Output, { target, file, name }: Spot, entry: ServerEntry = {}): Promise<void> {
  const shown = { [sectionOf(targets[target]!)]: { [name]: entry } }
  const text = isToml(file) ? stringify(shown) : JSON.stringify(shown, null, 2)
  output.result(shown, `${text.trimEnd()}\n`)
}

/**
 * Prints the state of the server's entry in the MCP client's settings. Returns exit code 0 if the entry is
 * current or, with --remove, missing.
 */
async function check(output: Output, spot: Spot, entry: ServerEntry | undefined): Promise<number> {
  const state = await stateOf(spot, entry)
  output.result({ ...spot, state }, `${spot.file}: ${state}\n`)
  return state === (entry === undefined ? 'missing' : 'current') ? exitCodes.done : exitCodes.failed
}

async function write(
  invocation: Invocation<Options>,
  spot: Spot,
  entry: ServerEntry | undefined,
): Promise<void> {
  const { options, output } = invocation
  const { file, name, scope } = spot
  const { before, after } = await edit(spot, entry)
  const changed = entry === undefined ? after !== (before ?? '') : after !== before
  if (options.dryRun) {
    const change = changed ? await unifiedDiff(file, file, before ?? '', after) : ''
    const text = changed ? change : `${file}: nothing would change\n`
    return output.result({ ...spot, changed, diff: change }, text)
  }
  if (!changed) return output.result({ ...spot, changed, backup: null }, `${file}: nothing to change\n`)
  const backup = writeSettings(file, after, scope)
  const done = entry === undefined ? 'removed from' : 'written to'
  output.result({ ...spot, changed, backup: backup ?? null }, `${name} ${done} ${file}\n`)
  if (backup !== undefined) output.note(`The previous version of the file is saved as ${backup}.`)
  if (entry !== undefined) await noteMissingSettings(invocation, targets[spot.target]!.title)
}

/** Validates a server name. Accepts only names that every MCP client supports. */
function readName(text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(text)) return text
  throw new CliError('usage', `--name ${JSON.stringify(text)} is not valid. Use letters, digits, - and _.`)
}

async function chooseServer(settings: Settings, { http, portable }: Options): Promise<Server> {
  if (!http) return thisServer(portable === true, settings.profile)
  return { url: `${await settings.baseUrl()}${routes.callMcp.path}` }
}

/**
 * Warns if the server might start without settings that it needs. An MCP client might not pass on this
 * shell's environment variables.
 */
async function noteMissingSettings(
  { options, settings, output }: Invocation<Options>,
  title: string,
): Promise<void> {
  if (options.http) {
    const address = await settings.baseUrl()
    return output.note(`Before you start ${title}, set SANDLOT_API_KEY to an API key for ${address}.`)
  }
  if (options.portable && !settings.isOnPath()) {
    output.note(
      `The entry runs \`sandlot\`, which is not on your PATH. Install its package with \`npm install -g\`, or omit --portable to use the full path to this client.`,
    )
  }
  const url = await settings.find('url')
  const key = await settings.findKey(url && readAddress(url.value, url.source))
  if (url?.source === settings.location && key?.source === settings.location) return
  output.note(
    `The address or the key is not saved, and ${title} might start the server without your environment. Save them with \`sandlot config set-url\` and \`sandlot config set-key\`.`,
  )
}

async function list({ options, settings, output }: Invocation<Options>): Promise<void> {
  const name = readName(options.name)
  const server = thisServer(options.portable === true, settings.profile)
  const spots = await Promise.all(
    findSpots(settings.folders(), name).map(async (spot) => ({
      ...spot,
      state: await stateOf(spot, entryFor(targets[spot.target]!, server)).catch(() => 'unreadable'),
    })),
  )
  const rows = spots.map(({ target, scope, state, file }) => [target, scope, state, file])
  if (rows.length > 0) return output.table({ data: spots }, ['TARGET', 'SCOPE', 'SERVER', 'FILE'], rows)
  output.note(`No MCP client was found. Supported clients: ${Object.keys(targets).join(', ')}.`)
  output.result({ data: spots }, '')
}

async function stateOf(spot: Spot, entry: ServerEntry | undefined): Promise<string> {
  const found = await read(spot)
  if (found === undefined) return 'missing'
  return entry && isCurrent(targets[spot.target]!, found, entry) ? 'current' : 'different'
}
