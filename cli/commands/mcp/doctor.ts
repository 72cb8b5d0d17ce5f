/** `sandlot mcp doctor [TARGET]`: whether what an MCP client's settings name does its work. */
import { type Define, handleWith, type Invocation } from '../../command.ts'
import { CliError, describeError, exitCodes } from '../../errors.ts'
import { connect } from '../../mcp/connection.ts'
import { examine, type Peer, reachPeer, startPeer } from '../../mcp/doctor.ts'
import { fileOf, findSpots, findTarget, read, type Spot } from '../../mcp/entries.ts'
import type { Settings } from '../../settings.ts'

interface Options {
  scope?: string
  name: string
}

export const define: Define = (command, exitWith) => {
  command
    .argument('[target]', 'a client; by default all those that have the server in their settings')
    .option('--scope <scope>', 'project or user; by default both')
    .option('--name <name>', 'what the server is called there', 'sandlot')
  handleWith<Options>(command, async (invocation) => {
    const { settings, output } = invocation
    const spots = await chooseSpots(invocation)
    if (spots.length === 0) {
      throw new CliError('failed', 'No MCP client here has the server in its settings.', {
        hint: '`sandlot mcp init TARGET` writes it; `sandlot mcp init` lists the clients.',
      })
    }
    const results = []
    for (const { entry, ...spot } of spots) results.push(await examineOne(settings, spot, entry, output.note))
    const text = results.map(({ file, problem }) => `${file}: ${problem ?? 'works'}\n`).join('')
    output.result({ data: results }, text)
    exitWith(results.every(({ problem }) => problem === null) ? exitCodes.done : exitCodes.failed)
  })
}

async function chooseSpots({ args, options, settings }: Invocation<Options>) {
  const { scope } = options
  if (scope !== undefined && scope !== 'project' && scope !== 'user') {
    throw new CliError('usage', `--scope ${JSON.stringify(scope)} is neither project nor user.`)
  }
  const [target] = args
  const places = settings.places()
  if (target !== undefined) findTarget(target, scope ?? 'user')
  const named = (spot: Spot) =>
    (target ?? spot.target) === spot.target && (scope ?? spot.scope) === spot.scope
  const spots = findSpots(places, options.name).filter(named)
  const found = await Promise.all(spots.map(async (spot) => ({ ...spot, entry: await read(spot) })))
  const there = found.filter(({ entry }) => entry !== undefined)
  if (there.length > 0 || target === undefined) return there
  const file = fileOf(findTarget(target, scope ?? 'user'), scope ?? 'user', places)
  throw new CliError('failed', `${file} does not name ${options.name}.`, {
    hint: `\`sandlot mcp init ${target}\` writes it.`,
  })
}

async function examineOne(settings: Settings, spot: Spot, entry: unknown, note: (text: string) => void) {
  note(`${spot.target} (${spot.scope}): ${spot.file}`)
  try {
    await using peer = await open(settings, entry)
    await examine(peer, (step) => note(`  ok  ${step}`))
    return { ...spot, problem: null }
  } catch (error) {
    const { message, hint } = describeError(error)
    return { ...spot, problem: [message, hint].filter((text) => text !== undefined).join(' ') }
  }
}

/** Whichever way the client's shape names it. */
async function open(settings: Settings, entry: unknown): Promise<Peer> {
  const { command, args = [], url, httpUrl, serverUrl, env, environment } = entry as Record<string, unknown>
  const address = url ?? httpUrl ?? serverUrl
  if (typeof address === 'string') {
    const own = await settings.baseUrl()
    if (address.startsWith(`${own}/`)) return reachPeer(connect(settings))
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
