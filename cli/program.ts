/** Builds the command line, and runs one command. */
import { Command, CommanderError } from 'commander'
import { commandSynonyms } from './commands/command-synonyms.ts'
import { type Branch, commands, type Entry } from './commands/index.ts'
import { addCommonOptions, type CommandTree, type CommonOptions, optionsOf } from './core/command.ts'
import { canDraw, colorChoices } from './core/drawing.ts'
import { CliError, describeError, exitCodes } from './core/errors.ts'
import { formatHelp, pathOf } from './core/help.ts'
import { createOutput, type Output } from './core/output.ts'
import { printable } from './core/printable.ts'
import { isShuttingDown, leave } from './core/shutdown.ts'
import { version } from './core/version.ts'

/**
 * @param args without Node and the script
 * @returns the exit code, after everything was printed
 */
export async function runProgram(args: string[]): Promise<number> {
  const run: Run = { command: undefined, code: exitCodes.done, output: guessOutput(args), entries: new Map() }
  const fail = (error: unknown) => {
    const problem = describeError(error)
    run.output.fail(problem, exitCodeOf(problem, run))
    return exitCodeOf(problem, run)
  }
  process.on('SIGINT', () => {
    if (!isShuttingDown()) void leave(fail(new CliError('interrupted', 'Interrupted.')))
  })
  surviveClosedOutput(fail)
  try {
    const program = createProgram(run, args)
    if (opensPicker(program, args)) {
      const { openPicker } = await import('./ui/index.ts')
      return await openPicker(program.opts())
    }
    if (args.length === 0) explainDumbTerminal()
    const topic = args[0] === 'help' && args[1] !== undefined ? await readTopic(args[1]) : undefined
    if (topic !== undefined) {
      process.stdout.write(topic)
      return exitCodes.done
    }
    // --help also loads the command's options.
    await program.parseAsync(args[0] === 'help' ? [...args.slice(1), '--help'] : args, {
      from: 'user',
    })
    return run.code
  } catch (error) {
    // The first error was already reported.
    if (isShuttingDown()) return exitCodes.interrupted
    if (!(error instanceof CommanderError)) return fail(error)
    if (error.exitCode === 0) return exitCodes.done
    // Commander has printed the error, but not the JSON object.
    const problem = new CliError('usage', messageOf(error, run.command))
    run.output.failSilently(problem, exitCodeOf(problem, run))
    return exitCodeOf(problem, run)
  }
}

/** Whether there are only common options and a terminal. */
function opensPicker(program: Command, args: string[]): boolean {
  const { operands, unknown } = program.parseOptions(args)
  const { json, input } = program.opts<CommonOptions>()
  if (operands.length > 0 || unknown.length > 0 || json !== undefined || input === false) return false
  // Checked last, because Node opens stdin on access.
  return canDraw()
}

/** Explains why the help replaces the picker. */
function explainDumbTerminal(): void {
  if (process.stdin.isTTY && process.stdout.isTTY)
    process.stderr.write(
      'sandlot: TERM is dumb, and the picker cannot draw on such a terminal. The commands work:\n\n',
    )
}

/** For completion and docs/cli.md. */
export function describeProgram(): CommandTree {
  const run: Run = { command: undefined, code: exitCodes.done, output: createOutput({}), entries: new Map() }
  return {
    program: createProgram(run),
    load: (command: Command) => load(command, run),
  }
}

interface Run {
  command: Command | undefined
  code: number
  output: Output
  entries: Map<Command, Entry>
}

function createProgram(run: Run, args: string[] = []): Command {
  const program = new Command('sandlot')
    .description('Short-lived, isolated sandboxes: create one, run commands in it, work with its files.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command...]', 'show help')
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      outputError: (text, write) => {
        write(printable(inOurWords(text, run.command).replace(/^error: /, 'sandlot: ')))
        write(`\`${pathOf(run.command ?? program)} --help\` shows how.\n`)
      },
    })
    .configureHelp({ formatHelp })
    .addHelpText('after', footer)
    .hook('preAction', (_, command) => {
      run.command = command
      const { json, color } = optionsOf<CommonOptions>(command)
      run.output = createOutput({ json: json !== undefined, color })
      assertUtf8(args)
    })
  addCommonOptions(program)
  addCommands(program, commands, run)
  return program
}

/** Node decodes arguments as UTF-8 and would change other bytes silently. @throws {CliError} `usage` */
function assertUtf8(args: string[]): void {
  const changed = args.find((arg) => arg.includes('\ufffd'))
  if (changed === undefined) return
  throw new CliError('usage', `The argument ${JSON.stringify(changed)} is not UTF-8, or has U+FFFD in it.`, {
    hint: 'Arguments must be UTF-8. `sandlot cp` copies a folder with other names in it byte by byte, and exec takes a script on stdin: `exec -i -- sh < FILE`.',
  })
}

const footer = `
Settings come from a flag, else --profile, else SANDLOT_URL, SANDLOT_API_KEY and SANDLOT_SESSION, else the
  settings file; \`sandlot help settings\` tells more.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such thing, 4 credentials, 5 ambiguous or conflicting,
  6 a quota, 7 a rate limit, 8 network or server, 9 not all was printed or copied, 130 interrupted; \`sandlot help exit-codes\` tells more.`

const isCommand = (name: string): boolean =>
  Object.entries(commands).some(
    ([each, entry]) => each === name || ('aliases' in entry && entry.aliases?.includes(name)),
  )

/** Returns a help topic. @throws {CliError} `usage` if there is neither a topic nor a command */
async function readTopic(name: string): Promise<string | undefined> {
  if (isCommand(name) || name.startsWith('-')) return undefined
  const { topics } = await import('./core/topics.ts')
  if (Object.hasOwn(topics, name)) return topics[name]!()
  throw new CliError('usage', `There is no help on ${JSON.stringify(name)}.`, {
    hint: `\`sandlot --help\` lists the commands. There is help on ${Object.keys(topics).join(' and ')} too.`,
  })
}

/** Adds names and summaries; the rest is loaded when the command is called. */
function addCommands(parent: Command, branch: Branch, run: Run): void {
  for (const [name, entry] of Object.entries(branch)) {
    const { hidden = false, aliases = [] } = 'load' in entry ? entry : {}
    const command = parent.command(name, { hidden }).description(entry.summary).aliases(aliases)
    run.entries.set(command, entry)
  }
  parent.hook('preSubcommand', async (_, command) => {
    run.command = command
    await load(command, run)
  })
}

async function load(command: Command, run: Run): Promise<void> {
  const entry = run.entries.get(command)
  if (entry === undefined) return
  if ('commands' in entry) addCommands(command, entry.commands, run)
  else {
    const { define } = await entry.load()
    const exitWith = (code: number) => {
      run.code = code
    }
    define(command, exitWith, describeProgram)
  }
  addCommonOptions(command)
  agreeToNegated(command)
}

/** Options declared only as `--no-…` default to true, which commander sets before ours are loaded. */
function agreeToNegated(command: Command): void {
  for (const option of command.options) {
    const [name, positive] = [option.attributeName(), option.long?.replace('--no-', '--')]
    const isAlone = option.negate && !command.options.some(({ long }) => long === positive)
    if (isAlone) command.setOptionValueWithSource(name, true, 'default')
  }
}

/** Commander has no message for a group without a command. */
const messageOf = ({ code, message }: CommanderError, command: Command | undefined): string =>
  code === 'commander.help' ? 'A command is missing.' : inOurWords(message, command).replace(/^error: /, '')

/** Adds suggestions for commands of other tools to commander's own. */
function inOurWords(text: string, group: Command | undefined): string {
  const end = text.endsWith('\n') ? '\n' : ''
  const [, value, argument, choices] = noChoice.exec(text) ?? []
  if (choices !== undefined)
    return `error: There is no ${argument} ${JSON.stringify(value)}. It is one of ${choices}.${end}`
  const [, name] = /^error: unknown command '([^']*)'/.exec(text) ?? []
  const typed = group === undefined ? name : `${group.name()} ${name}`
  if (name === undefined || !Object.hasOwn(commandSynonyms, typed!)) return text
  return `error: unknown command '${name}'\n(Did you mean ${commandSynonyms[typed!]}?)${end}`
}

const noChoice =
  /^error: command-argument value '(.*)' is invalid for argument '(.*)'\. Allowed choices are (.*)\./

/** These commands use the exit code of the command they run, except for a few. */
function exitCodeOf(error: CliError, { command }: Run): number {
  const runsOne = ['exec', 'attach'].includes(command?.name() ?? '') || command?.opts().rm === true
  return runsOne && error.exitCode !== exitCodes.interrupted ? exitCodes.execFailed : error.exitCode
}

/** A guess before parsing, so that usage errors are printed as JSON too. */
function guessOutput(args: string[]): Output {
  const end = args.indexOf('--')
  const own = args.slice(0, end < 0 ? undefined : end)
  const color = colorChoices.find((choice) => own.includes(`--color=${choice}`))
  return createOutput({ json: own.some((word) => /^--json(=|$)/.test(word)), color })
}

/** EPIPE (`| head`) is not a failure; a full disk is. */
function surviveClosedOutput(fail: (error: unknown) => number): void {
  process.stderr.on('error', () => {})
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return
    void leave(fail(new CliError('output_failed', `Writing to stdout failed: ${error.message}`)))
  })
}
