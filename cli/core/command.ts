/** Shared options of commands, and the adapter from commander to a handler. */
import { type Command, Option } from 'commander'
import { type Api, createApi, type Trace } from './api.ts'
import { type ColorChoice, colorChoices } from './drawing.ts'
import { CliError } from './errors.ts'
import { assertKnownFields, type JsonShape, readFields } from './json-fields.ts'
import { createOutput, type Output, type OutputOptions } from './output.ts'
import { readCount } from './parse.ts'
import { type Ask, createAsk } from './prompt.ts'
import { selectSession } from './session.ts'
import { Settings } from './settings.ts'

/** Exported by each command file. */
export type Define = (
  command: Command,
  exitWith: (code: number) => void,
  describeProgram: () => CommandTree,
) => void

export interface CommandTree {
  program: Command
  /** Loads a command's arguments and options, or its subcommands. Call it once per command. */
  load(command: Command): Promise<void>
}

export interface Invocation<Options> {
  args: string[]
  options: Options
  settings: Settings
  api: Api
  /** For requests that do not go through `api`. */
  trace: Trace | undefined
  output: Output
  ask: Ask
  /** Resolves the session to its id. @throws {CliError} as {@link selectSession} */
  session(typed?: string): Promise<string>
  command: Command
  exitWith(code: number): void
  describeProgram(): CommandTree
}

export interface CommonOptions {
  /** A string lists fields. */
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

/** `--json` and `--json=FIELDS`. Commander would take the next word as an optional value. */
class JsonOption extends Option {
  /** Commander passes each word as typed. */
  is(word: string): boolean {
    const [, fields] = /^--json=(.*)$/s.exec(word) ?? []
    if (fields === undefined && word !== '--json') return false
    this.preset(fields)
    return true
  }
}

/** Help group of the options that every command accepts. */
export const globalGroup = 'Global options:'

/** These options are accepted before and after the command's name. */
export function addCommonOptions(command: Command): void {
  const options = [
    new JsonOption(
      '--json',
      'print one JSON object, errors too; --json=FIELD,FIELD.PATH prints only these parts',
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
  for (const option of options) command.addOption(option.helpGroup(globalGroup))
}

export const addSessionOption = (
  command: Command,
  meaning = 'the session, by id or name; by default the current one, or the only active one',
): Command => command.option('-s, --session <id>', meaning)

export interface PageOptions {
  limit: string
  cursor?: string
}

export const addPageOptions = (command: Command): Command =>
  command
    .option('--limit <count>', 'how many to list at most, up to 100', '100')
    .option('--cursor <cursor>', 'go on where the last page ended')

/** @throws {CliError} `usage` */
export const readPage = ({ limit, cursor }: PageOptions) => ({ limit: readCount(limit, '--limit'), cursor })

const examples = new WeakMap<Command, string[]>()
const fieldsFor = new WeakMap<Command, (options: object) => readonly string[] | undefined>()

export const examplesOf = (command: Command): string[] => examples.get(command) ?? []

/** Returns the declared fields of the command's result, or an empty list. */
export const fieldsOf = (command: Command, options: object): readonly string[] =>
  fieldsFor.get(command)?.(options) ?? []

interface Declaration<Options> {
  declare?(command: Command): unknown
  notes?: string
  examples: string[]
  /** Fields of the result, known before the command runs. */
  fields?: readonly string[] | ((options: Options) => readonly string[])
  /** Name of the result's list; `data` by default. */
  list?: string
  /** Whether the command may create the profile. */
  makesProfile?: boolean
  handle(invocation: Invocation<Options>): Promise<void>
}

/** Builds a command from its declaration. */
export function defineCommand<Options extends object>(declaration: Declaration<Options>): Define {
  const { declare, notes = '', examples: lines, fields, list, makesProfile = false, handle } = declaration
  const known = (options: Options) => (typeof fields === 'function' ? fields(options) : fields)
  return (command, exitWith, describeProgram) => {
    declare?.(command)
    if (notes !== '') command.addHelpText('after', notes)
    examples.set(command, lines)
    fieldsFor.set(command, (options) => known(options as Options))
    command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`)
    command.addHelpText('after', () => {
      const names = fieldsOf(command, optionsOf<Options>(command))
      return names.length === 0 ? '' : `\nFields of --json: ${names.join(', ')}`
    })
    command.action(async () => {
      const options = optionsOf<Options & CommonOptions>(command)
      const names = known(options)
      const output = createOutput(outputOptionsOf(options, names && { fields: names, list }))
      const settings = new Settings(options, process.env, { mayBeNew: makesProfile, warn: output.note })
      const trace = options.debug ? output.trace : undefined
      const api = createApi(settings, trace, output)
      const ask = createAsk(options)
      const session = (typed?: string) => selectSession(settings, api, typed)
      const { args } = command
      try {
        const own = { command, args, options, settings, api, trace, output, ask, session }
        await handle({ ...own, exitWith, describeProgram })
      } catch (error) {
        if (!(error instanceof CliError)) throw error
        if (error.details.errors === undefined) throw error
        const { inTermsOfFlags } = await import('./flag-errors.ts')
        throw inTermsOfFlags(error, command)
      }
    })
  }
}

/** @throws {CliError} `usage` for unknown fields */
function outputOptionsOf({ json, quiet, color }: CommonOptions, shape: JsonShape | undefined): OutputOptions {
  const fields = typeof json === 'string' ? readFields(json) : undefined
  if (fields !== undefined && shape !== undefined) assertKnownFields(fields, shape.fields)
  return { json: json !== undefined, fields, shape, quiet: quiet === true, color }
}

/** Values after the command's name win over values before it, and both over defaults. */
export function optionsOf<Options extends object>(command: Command): Options {
  const line = [command.parent?.parent, command.parent, command].filter((each) => each != null)
  const given = line.flatMap((each) =>
    Object.entries(each.opts()).filter(([name]) => each.getOptionValueSource(name) !== 'default'),
  )
  return { ...command.opts<Options>(), ...Object.fromEntries(given) }
}

export const collect = (value: string, before: string[] = []): string[] => [...before, value]
