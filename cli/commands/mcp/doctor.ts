/** `sandlot mcp doctor [TARGET]`: tries the server that an MCP client's settings name. */
import { Argument, Option } from 'commander'
import { startChecks } from '../../core/checks.ts'
import { defineCommand, type Invocation } from '../../core/command.ts'
import { CliError, exitCodes } from '../../core/errors.ts'
import { connect } from '../../mcp/connection.ts'
import { examine, type Peer, reachPeer, startPeer } from '../../mcp/doctor.ts'
import { fileOf, findSpots, findTarget, read, type Spot } from '../../mcp/entries.ts'
import { scopes, type TargetScope, targets } from '../../mcp/targets.ts'

interface Options {
  scope?: TargetScope
  name: string
}

export const define = defineCommand<Options>({
  declare: (command) =>
    command
      .addArgument(
        new Argument(
          '[target]',
          'the client; by default every one that has the server in its settings',
        ).choices(Object.keys(targets)),
      )
      .addOption(new Option('--scope <scope>', 'by default both').choices(scopes))
      .option('--name <name>', 'the name of the server in its settings', 'sandlot'),
  examples: ['sandlot mcp doctor', 'sandlot mcp doctor claude-code --scope project'],
  handle: async (invocation) => {
    const { output, exitWith } = invocation
    const spots = await chooseSpots(invocation)
    if (spots.length === 0) {
      throw new CliError('failed', 'No MCP client here has the server in its settings.', {
        hint: '`sandlot mcp init TARGET` writes it; `sandlot mcp init` lists the clients.',
      })
    }
    const results = []
    for (const { entry, ...spot } of spots) results.push(await examineOne(invocation, spot, entry))
    const text = results.map(({ file, problem }) => `${file}: ${problem ?? 'works'}\n`).join('')
    output.result({ data: results }, text)
    exitWith(results.every(({ problem }) => problem === null) ? exitCodes.done : exitCodes.failed)
  },
})

async function chooseSpots({ args, options, settings }: Invocation<Options>) {
  const { scope } = options
  const [target] = args
  const folders = settings.folders()
  if (target !== undefined) findTarget(target, scope ?? 'user')
  const named = (spot: Spot) =>
    (target ?? spot.target) === spot.target && (scope ?? spot.scope) === spot.scope
  const spots = findSpots(folders, options.name).filter(named)
  const found = await Promise.all(spots.map(async (spot) => ({ ...spot, entry: await read(spot) })))
  const there = found.filter(({ entry }) => entry !== undefined)
  if (there.length > 0 || target === undefined) return there
  const file = fileOf(findTarget(target, scope ?? 'user'), scope ?? 'user', folders)
  throw new CliError('failed', `${file} does not name ${options.name}.`, {
    hint: `\`sandlot mcp init ${target}\` writes it.`,
  })
}

async function examineOne(invocation: Invocation<Options>, spot: Spot, entry: unknown) {
  const { note } = invocation.output
  note(`${spot.target} (${spot.scope}): ${spot.file}`)
  const checks = startChecks(note)
  let peer: Peer | undefined
  await checks.check('start', async () => {
    peer = await open(invocation, entry)
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

/** Clients name command and address in different ways. */
async function open({ settings, trace }: Invocation<Options>, entry: unknown): Promise<Peer> {
  const { command, args = [], url, httpUrl, serverUrl, env, environment } = entry as Record<string, unknown>
  const address = url ?? httpUrl ?? serverUrl
  if (typeof address === 'string') {
    const own = await settings.baseUrl()
    if (address.startsWith(`${own}/`)) return reachPeer(connect(settings, trace))
    throw new CliError('failed', `It points to ${address}, and the saved address is ${own}.`)
  }
  const [program, ...given] = [command, args].flat() as string[]
  if (typeof program !== 'string') throw new CliError('failed', 'The entry names no command.')
  return startPeer(
    program,
    given,
    settings.environmentWith((env ?? environment ?? {}) as Record<string, string>),
  )
}
