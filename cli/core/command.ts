import { type Command, Option } from 'commander'
import { type Api, createApi, type Trace } from './api.ts'
import { type ColorChoice, colorChoices } from './drawing.ts'
import { CliError } from './errors.ts'
import { assertFieldsExist, type JsonShape, readFields } from './json-fields.ts'
import { createOutput, type Output, type OutputOptions } from './output.ts'
import { readCount } from './parse.ts'
import { type Ask, createAsk } from './prompt.ts'
import { selectSession } from './session.ts'
import { Settings } from './settings.ts'

export type Define = (
  command: Command,
  exitWith: (code: number) => void,
  describeProgram: () => CommandTree,
) => void

export interface CommandTree {
  program: Command
  /**
   * Adds a command's arguments and options, or a group's subcommands. Must be called only once per command.
   */
  load(command: Command): Promise<void>
}

export interface Invocation<Options> {
  args: string[]
  options: Options
  settings: Settings
  api: Api
  /** Prints requests; defined only with --debug. Commands pass it to any API client that they create. */
  trace: Trace | undefined
  output: Output
  ask: Ask
  /** Returns the id of the session to use. See {@link selectSession}. */
  session(typed?: string): Promise<string>
  command: Command
  exitWith(code: number): void
  describeProgram(): CommandTree
}

export interface CommonOptions {
  /** True for `--json`, or the field list of `--json=FIELDS`. */
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

/** The --json option, which takes a value only after `=`, never from the next argument. */
class JsonOption extends Option {
  is(word: string): boolean {
    const [, fields] = /^--json=(.*)$/s.exec(word) ?? []
    if (fields === undefined && word !== '--json') return false
    this.preset(fields)
    return true
  }
}

export const globalGroup = 'Global options:'

export function addCommonOptions(command: Command): void {
  const options = [
    new JsonOption(
      '--json',
      'print one JSON object, even for errors; --json=FIELD,FIELD.PATH prints only those fields',
    ),
    new Option('-q, --quiet', 'suppress notes on stderr, and print only the ids in lists'),
    new Option('--no-input', 'never prompt: fail and name the option to use instead'),
    new Option('-y, --yes', 'answer every yes-or-no question with yes'),
    new Option('--debug', 'show each request with its duration and id, without secrets'),
    new Option(
      '--color <when>',
      'when to use colors; by default depends on the terminal, FORCE_COLOR and NO_COLOR',
    ).choices(colorChoices),
    new Option('--profile <name>', 'use the settings of this profile; also SANDLOT_PROFILE'),
    new Option('--url <url>', 'the base address of the service'),
    new Option(
      '--api-key <key>',
      'the API key; other users of this machine can see it, unlike SANDLOT_API_KEY',
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
    .option('--limit <count>', 'the maximum number of entries, up to 100', '100')
    .option('--cursor <cursor>', 'continue after the previous page')

/** Parses --limit and --cursor. @throws {CliError} `usage` if --limit is not a positive integer */
export const readPage = ({ limit, cursor }: PageOptions) => ({ limit: readCount(limit, '--limit'), cursor })

const fieldsFor = new WeakMap<Command, (options: object) => readonly string[] | undefined>()

export const fieldsOf = (command: Command, options: object): readonly string[] =>
  fieldsFor.get(command)?.(options) ?? []

interface Declaration<Options> {
  declare?(command: Command): unknown
  notes?: string
  examples: string[]
  /** Fields of the result. If `--json=FIELDS` names any other field, the command is not run. */
  fields?: readonly string[] | ((options: Options) => readonly string[])
  /** Name of the result's list field. Default: `data`. */
  list?: string
  /** Whether the command creates the profile if it does not exist. */
  makesProfile?: boolean
  handle(invocation: Invocation<Options>): Promise<void>
}

export function defineCommand<Options extends object>(declaration: Declaration<Options>): Define {
  const { declare, notes = '', examples: lines, fields, list, makesProfile = false, handle } = declaration
  const fieldNames = (options: Options) => (typeof fields === 'function' ? fields(options) : fields)
  return (command, exitWith, describeProgram) => {
    declare?.(command)
    if (notes !== '') command.addHelpText('after', notes)
    fieldsFor.set(command, (options) => fieldNames(options as Options))
    command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`)
    command.addHelpText('after', () => {
      const names = fieldsOf(command, optionsOf<Options>(command))
      return names.length === 0 ? '' : `\nFields of --json: ${names.join(', ')}`
    })
    command.action(async () => {
      const options = optionsOf<Options & CommonOptions>(command)
      const names = fieldNames(options)
      const output = createOutput(outputOptionsOf(options, names && { fields: names, list }))
      const settings = new Settings(options, process.env, { mayBeNew: makesProfile, warn: output.note })
      const trace = options.debug ? output.trace : undefined
      const api = createApi(settings, trace, output)
      const ask = createAsk(options)
      const session = (typed?: string) => selectSession(settings, api, typed)
      const { args } = command
      try {
        const context = { command, args, options, settings, api, trace, output, ask, session }
        await handle({ ...context, exitWith, describeProgram })
      } catch (error) {
        if (!(error instanceof CliError)) throw error
        if (error.details.errors === undefined) throw error
        const { inTermsOfFlags } = await import('./flag-errors.ts')
        throw inTermsOfFlags(error, command)
      }
    })
  }
}

/** @throws {CliError} `usage` if --json names an unknown field */
function outputOptionsOf({ json, quiet, color }: CommonOptions, shape: JsonShape | undefined): OutputOptions {
  const fields = typeof json === 'string' ? readFields(json) : undefined
  if (fields !== undefined && shape !== undefined) assertFieldsExist(fields, shape.fields)
  return { json: json !== undefined, fields, shape, quiet: quiet === true, color }
}

/**
 * Returns a command's options. Options after its name override options before it, and both override defaults.
 */
export function optionsOf<Options extends object>(command: Command): Options {
  const line = [command.parent?.parent, command.parent, command].filter((each) => each != null)
  const given = line.flatMap((each) =>
    Object.entries(each.opts()).filter(([name]) => each.getOptionValueSource(name) !== 'default'),
  )
  return { ...command.opts<Options>(), ...Object.fromEntries(given) }
}

export const collect = (value: string, before: string[] = []): string[] => [...before, value]
