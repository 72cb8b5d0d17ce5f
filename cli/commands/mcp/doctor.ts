import { Argument, Option } from 'commander'
import { startChecks } from '../../core/checks.ts'
import { defineCommand, type Invocation } from '../../core/command.ts'
import { CliError, exitCodes } from '../../core/errors.ts'
import type { Output } from '../../core/output.ts'
import { connect } from '../../mcp/connection.ts'
import { examine, type Peer, reachPeer, startPeer } from '../../mcp/doctor.ts'
import {
  commandLine,
  fileOf,
  findSpots,
  findTarget,
  isAsInitWrites,
  launchOf,
  read,
  type Spot,
} from '../../mcp/entries.ts'
import { scopes, type TargetScope, targets } from '../../mcp/targets.ts'

interface Options {
  scope: TargetScope
  name: string
  yes?: boolean
}

export const define = defineCommand<Options>({
  declare: (command) =>
    command
      .addArgument(
        new Argument(
          '[target]',
          'the client; by default all clients whose settings contain the server',
        ).choices(Object.keys(targets)),
      )
      .addOption(
        new Option('--scope <scope>', "test this folder's settings, or the user's settings")
          .choices(scopes)
          .default('user'),
      )
      .option('--name <name>', 'the name of the server in the settings', 'sandlot'),
  notes: `
Starts the command in the settings, which can read your API key. A folder's settings are therefore tested only with
--scope project, after you have seen and confirmed the command. A command that \`mcp init\` would not write is
started only with --yes.`,
  examples: ['sandlot mcp doctor', 'sandlot mcp doctor claude-code --scope project'],
  handle: async (invocation) => {
    const { output, exitWith } = invocation
    const results = []
    for (const { entry, ...spot } of await chooseSpots(invocation))
      results.push(await examineOne(invocation, spot, entry))
    const text = results.map(({ file, problem }) => `${file}: ${problem ?? 'works'}\n`).join('')
    output.result({ data: results }, text)
    exitWith(results.every(({ problem }) => problem === null) ? exitCodes.done : exitCodes.failed)
  },
})

async function chooseSpots({ args, options, settings, output }: Invocation<Options>) {
  const { scope, name } = options
  const [target] = args
  const folders = settings.folders()
  const client = target === undefined ? undefined : findTarget(target, scope)
  const isSelected = (spot: Spot) => spot.target === (target ?? spot.target)
  const found = await Promise.all(
    findSpots(folders, name, [scope])
      .filter(isSelected)
      .map(async (spot) => ({ ...spot, entry: await read(spot) })),
  )
  if (scope === 'user') await noteProjectSettings(findSpots(folders, name).filter(isSelected), output)
  const existing = found.filter(({ entry }) => entry !== undefined)
  if (existing.length > 0) return existing
  const option = scope === 'user' ? '' : ' --scope project'
  if (client === undefined) {
    const place = scope === 'user' ? 'on this machine' : 'in this folder'
    throw new CliError('failed', `No MCP client ${place} is configured to use the Sandlot server.`, {
      hint: `\`sandlot mcp init TARGET${option}\` adds it; \`sandlot mcp init\` lists the clients.`,
    })
  }
  throw new CliError('failed', `${fileOf(client, scope, folders)} has no server named ${name}.`, {
    hint: `\`sandlot mcp init ${target}${option}\` adds it.`,
  })
}

/**
 * Prints a note for each project settings file that also contains the server. Without --scope project,
 * `mcp doctor` tests only the user's settings.
 */
async function noteProjectSettings(spots: Spot[], { note }: Output): Promise<void> {
  for (const spot of spots.filter(({ scope }) => scope === 'project')) {
    const entry = await read(spot).catch(() => undefined)
    if (entry !== undefined)
      note(`${spot.file} also contains the server ${spot.name}. Use --scope project to test it.`)
  }
}

async function examineOne(invocation: Invocation<Options>, spot: Spot, entry: unknown) {
  const { note } = invocation.output
  note(`${spot.target} (${spot.scope}): ${spot.file}`)
  const checks = startChecks(note)
  let peer: Peer | undefined
  await checks.check('start', async () => {
    peer = await open(invocation, spot, entry)
    return 'started'
  })
  if (peer !== undefined) {
    await using server = peer
    await examine(server, checks)
  }
  const failed = checks.done.find(({ ok }) => !ok)
  const problem = failed && [failed.detail, failed.next].filter((text) => text !== null).join(' ')
  return { ...spot, problem: problem ?? null, checks: checks.done }
}

async function open(invocation: Invocation<Options>, spot: Spot, entry: unknown): Promise<Peer> {
  const { settings, api } = invocation
  const launch = launchOf(entry)
  if ('url' in launch) {
    const own = await settings.baseUrl()
    if (launch.url.startsWith(`${own}/`)) return reachPeer(connect(api))
    throw new CliError('failed', `The MCP server is at ${launch.url}, but the base address is ${own}.`)
  }
  if (spot.scope === 'project') await requirePermission(invocation, spot, entry, commandLine(launch))
  return startPeer(launch.program, launch.args, settings.environmentWith(launch.env))
}

/** Asks before starting a server that a project configures, because that server could read the API key. */
async function requirePermission(
  { options, output, ask }: Invocation<Options>,
  { target }: Spot,
  entry: unknown,
  line: string,
): Promise<void> {
  if (options.yes) return output.note(`Starting: ${line}`)
  if (!isAsInitWrites(targets[target]!, entry)) {
    const why = `Not started, because \`sandlot mcp init\` would not write this command: ${line}`
    throw new CliError('failed', why, {
      hint: 'The command can read your API key. Use --yes to start it anyway.',
    })
  }
  await ask.confirm(`Start ${line}?`, 'The server was not started.')
}
