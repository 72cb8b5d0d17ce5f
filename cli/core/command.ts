/** What command files are made of: the options they share, and the bridge from commander to a handler. */
import { type Command, Option } from 'commander'
import { type Api, createApi, type Trace } from './api.ts'
import { CliError } from './errors.ts'
import { type JsonShape, mustBeKnown, readFields } from './json-fields.ts'
import { createOutput, type Output, type OutputOptions } from './output.ts'
import { readCount } from './parse.ts'
import { type Ask, createAsk } from './prompt.ts'
import { selectSession } from './session.ts'
import { type ColorChoice, colorChoices, Settings } from './settings.ts'

/** A command file exports one: it adds arguments, options, help and action to its command. */
export type Define = (command: Command, exitWith: (code: number) => void) => void

export interface Invocation<Options> {
  /** Operands as typed. */
  args: string[]
  options: Options
  settings: Settings
  api: Api
  /** For requests past `api`. */
  trace: Trace | undefined
  output: Output
  ask: Ask
  /** The session that is meant. @throws {CliError} as {@link selectSession} */
  session(): Promise<string>
  command: Command
  /** Sets the exit code, where it is not 0. */
  exitWith(code: number): void
}

export interface CommonOptions {
  /** A text names fields. */
  json?: true | string
  quiet?: boolean
  input?: boolean
  yes?: boolean
  debug?: boolean
  color?: ColorChoice
  profile?: string
  url?: string
  apiKey?: string
  session?: string
}

/** `--json` and `--json=FIELDS`. Commander would take the next word for an optional value. */
class JsonOption extends Option {
  /** Commander asks with each word as it was typed. */
  is(word: string): boolean {
    const [, fields] = /^--json=(.*)$/s.exec(word) ?? []
    if (fields === undefined && word !== '--json') return false
    this.preset(fields)
    return true
  }
}

/** Accepted before the command's name and after it. */
export function addCommonOptions(command: Command): void {
  const options = [
    new JsonOption(
      '--json',
      'print one JSON object, errors too; --json=FIELD,FIELD prints only these fields',
    ),
    new Option('-q, --quiet', 'print no notes on stderr, and only the ids of a list'),
    new Option('--no-input', 'never ask: fail at once, and say which option to give'),
    new Option('-y, --yes', 'answer every yes-or-no question with yes'),
    new Option('--debug', 'show each request with its time and id, and no secrets'),
    new Option(
      '--color <when>',
      'when to use colours; by default the terminal, FORCE_COLOR and NO_COLOR decide',
    ).choices(colorChoices),
    new Option('--profile <name>', 'take the settings of this profile; SANDLOT_PROFILE does the same'),
    new Option('--url <url>', 'the base address of the service'),
    new Option(
      '--api-key <key>',
      'the API key; other users of this machine can see it here, but not in SANDLOT_API_KEY',
    ),
  ]
  for (const option of options) command.addOption(option.helpGroup('Global options:'))
}

export const addSessionOption = (
  command: Command,
  meaning = 'the session; by default the only active one',
): Command => command.option('-s, --session <id>', meaning)

/** Of commands that list page by page. */
export interface PageOptions {
  limit: string
  cursor?: string
}

export const addPageOptions = (command: Command): Command =>
  command
    .option('--limit <count>', 'how many to list at most, up to 100', '100')
    .option('--cursor <cursor>', 'go on where the last page ended')

/** The page as a query asks for it. @throws {CliError} `usage` */
export const pageOf = ({ limit, cursor }: PageOptions) => ({ limit: readCount(limit, '--limit'), cursor })

const examples = new WeakMap<Command, string[]>()

export const examplesOf = (command: Command): string[] => examples.get(command) ?? []

/** What a command file says of its command. */
interface Declaration<Options> {
  /** Adds arguments, options and help. */
  declare?(command: Command): unknown
  /** Below the options in its help. */
  notes?: string
  /** Lines as they are typed, below the help of the command. */
  examples: string[]
  /** The fields of the result, so that they are known before anything is done. */
  fields?: readonly string[] | ((options: Options) => readonly string[])
  /** The member of the result that holds the list, where it is not `data`. */
  list?: string
  /** Whether the profile may be one that is not there yet. */
  makesProfile?: boolean
  handle(invocation: Invocation<Options>): Promise<void>
}

/** A command of its declaration and its action. Options may stand before the command's name too. */
export function defineCommand<Options extends object>(declaration: Declaration<Options>): Define {
  const { declare, notes = '', examples: lines, fields, list, makesProfile = false, handle } = declaration
  const fieldsFor = (options: Options) => (typeof fields === 'function' ? fields(options) : fields)
  return (command, exitWith) => {
    declare?.(command)
    if (notes !== '') command.addHelpText('after', notes)
    examples.set(command, lines)
    command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`)
    command.addHelpText('after', () => {
      const known = fieldsFor(optionsOf<Options>(command))
      return known === undefined ? '' : `\nFields of --json: ${known.join(', ')}`
    })
    command.action(async () => {
      const options = optionsOf<Options & CommonOptions>(command)
      const known = fieldsFor(options)
      const output = createOutput(outputOptionsOf(options, known && { fields: known, list }))
      const settings = new Settings(options, process.env, { mayBeNew: makesProfile })
      const trace = options.debug ? output.trace : undefined
      const api = createApi(settings, trace)
      const ask = createAsk(options)
      const session = () => selectSession(settings, api)
      const { args } = command
      try {
        await handle({ command, args, options, settings, api, trace, output, ask, session, exitWith })
      } catch (error) {
        if (!(error instanceof CliError) || error.details.session === undefined) throw error
        const { suggestSessions } = await import('./suggest.ts')
        throw await suggestSessions(error, api)
      }
    })
  }
}

/** @throws {CliError} `usage` for fields that the result does not have */
function outputOptionsOf({ json, quiet, color }: CommonOptions, shape: JsonShape | undefined): OutputOptions {
  const fields = typeof json === 'string' ? readFields(json) : undefined
  if (fields !== undefined && shape !== undefined) mustBeKnown(fields, shape.fields)
  return { json: json !== undefined, fields, shape, quiet: quiet === true, color }
}

/** As given to the command itself, else before its name, else by default. */
export function optionsOf<Options extends object>(command: Command): Options {
  const line = [command.parent?.parent, command.parent, command].filter((each) => each != null)
  const given = line.flatMap((each) =>
    Object.entries(each.opts()).filter(([name]) => each.getOptionValueSource(name) !== 'default'),
  )
  return { ...command.opts<Options>(), ...Object.fromEntries(given) }
}

/** For options that may be given several times. */
export const collect = (value: string, before: string[] = []): string[] => [...before, value]
