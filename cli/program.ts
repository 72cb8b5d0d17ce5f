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

/** Runs a command, or opens the picker. @returns the exit code */
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
  handleOutputErrors(fail)
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
    // With --help, commander also runs the hooks that load the command's options.
    const words = args[0] === 'help' ? [...args.slice(1), '--help'] : args
    await program.parseAsync(words, { from: 'user' })
    return run.code
  } catch (error) {
    // The error that caused the shutdown has already been reported.
    if (isShuttingDown()) return exitCodes.interrupted
    if (!(error instanceof CommanderError)) return fail(error)
    if (error.exitCode === 0) return exitCodes.done
    // Commander has printed the error, but not as JSON.
    const problem = new CliError('usage', messageOf(error, run.command))
    run.output.failSilently(problem, exitCodeOf(problem, run))
    return exitCodeOf(problem, run)
  }
}

/**
 * Returns whether to open the picker: on a terminal, with no command, and with neither --json nor --no-input.
 */
function opensPicker(program: Command, args: string[]): boolean {
  const { operands, unknown } = program.parseOptions(args)
  const { json, input } = program.opts<CommonOptions>()
  if (operands.length > 0 || unknown.length > 0 || json !== undefined || input === false) return false
  // Checked last, because Node opens stdin on access.
  return canDraw()
}

function explainDumbTerminal(): void {
  if (process.stdin.isTTY && process.stdout.isTTY)
    process.stderr.write(
      'sandlot: The picker is not available because TERM is dumb. Use the commands instead:\n\n',
    )
}

/** Returns the tree of commands, which is used for shell completion and to generate docs/cli.md. */
export function describeProgram(): CommandTree {
  const run: Run = { command: undefined, code: exitCodes.done, output: createOutput({}), entries: new Map() }
  return { program: createProgram(run), load: (command) => load(command, run) }
}

interface Run {
  command: Command | undefined
  code: number
  output: Output
  entries: Map<Command, Entry>
}

function createProgram(run: Run, args: string[] = []): Command {
  const program = new Command('sandlot')
    .description('Create short-lived, isolated sandboxes, run commands in them, and work with their files.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command...]', 'show help')
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      outputError: (text, write) => {
        write(printable(rewriteError(text, run.command).replace(/^error: /, 'sandlot: ')))
        write(`See \`${pathOf(run.command ?? program)} --help\`.\n`)
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
  addCommands(program, namedBy(args), run)
  return program
}

/** Returns only the command that the arguments begin with, if any, because creating all takes 4 ms. */
function namedBy([word = '']: string[]): Branch {
  const named = findNamed(word)
  return named.length > 0 ? Object.fromEntries(named) : commands
}

const findNamed = (word: string) =>
  Object.entries(commands).filter(([name, entry]) => [name, ...aliasesOf(entry)].includes(word))

const aliasesOf = (entry: Entry): string[] => ('load' in entry ? (entry.aliases ?? []) : [])

/** Rejects arguments that are not UTF-8. Node silently replaces their invalid bytes with U+FFFD. */
function assertUtf8(args: string[]): void {
  const changed = args.find((arg) => arg.includes('\ufffd'))
  if (changed === undefined) return
  throw new CliError(
    'usage',
    `The argument ${JSON.stringify(changed)} is not valid UTF-8, or it contains U+FFFD.`,
    {
      hint: 'To copy files with such names, copy their folder with `sandlot cp`. To use such names in a command, pass a script on stdin: `exec -i -- sh < FILE`.',
    },
  )
}

const footer = `
Settings are read from flags, the profile of --profile, SANDLOT_URL, SANDLOT_API_KEY and SANDLOT_SESSION, and the
  settings file, in that order; see \`sandlot help settings\`.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 credentials, 5 ambiguous or conflicting, 6 quota,
  7 rate limit, 8 network or server error, 9 incomplete, 130 interrupted; see \`sandlot help exit-codes\`.`

/**
 * Returns a help topic, or undefined if `name` is a command or an option.
 * @throws {CliError} `usage` for an unknown name
 */
async function readTopic(name: string): Promise<string | undefined> {
  if (findNamed(name).length > 0 || name.startsWith('-')) return undefined
  const { topics } = await import('./core/topics.ts')
  if (Object.hasOwn(topics, name)) return topics[name]!()
  throw new CliError('usage', `No help topic or command is named ${JSON.stringify(name)}.`, {
    hint: `\`sandlot --help\` lists the commands. The help topics are ${Object.keys(topics).join(' and ')}.`,
  })
}

/**
 * Adds commands to a group. Adds their options only when a command runs, so that the client starts quickly.
 */
function addCommands(parent: Command, branch: Branch, run: Run): void {
  for (const [name, entry] of Object.entries(branch)) {
    const hidden = 'load' in entry && entry.hidden === true
    const command = parent.command(name, { hidden }).description(entry.summary).aliases(aliasesOf(entry))
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
  setNegatedDefaults(command)
}

/**
 * Sets options declared only as `--no-…` to true by default. Commander sets such defaults too early, before
 * the `preSubcommand` hook has added the options.
 */
function setNegatedDefaults(command: Command): void {
  for (const option of command.options) {
    const [name, positive] = [option.attributeName(), option.long?.replace('--no-', '--')]
    const isOnlyNegated = option.negate && !command.options.some(({ long }) => long === positive)
    if (isOnlyNegated) command.setOptionValueWithSource(name, true, 'default')
  }
}

/** Returns a usage error's message. Adds one for a missing subcommand, for which commander provides none. */
const messageOf = ({ code, message }: CommanderError, command: Command | undefined): string =>
  code === 'commander.help' ? 'A command is missing.' : rewriteError(message, command).replace(/^error: /, '')

/** Rewrites commander's error messages, and suggests equivalents for commands from other tools. */
function rewriteError(text: string, group: Command | undefined): string {
  const end = text.endsWith('\n') ? '\n' : ''
  const [, value, argument, choices] = invalidChoice.exec(text) ?? []
  if (choices !== undefined)
    return `error: Unknown ${argument} ${JSON.stringify(value)}. Use one of ${choices}.${end}`
  const [, name] = /^error: unknown command '([^']*)'/.exec(text) ?? []
  const typed = group === undefined ? name : `${group.name()} ${name}`
  if (name === undefined || !Object.hasOwn(commandSynonyms, typed!)) return text
  return `error: unknown command '${name}'\n(Did you mean ${commandSynonyms[typed!]}?)${end}`
}

const invalidChoice =
  /^error: command-argument value '(.*)' is invalid for argument '(.*)'\. Allowed choices are (.*)\./

/** Returns an error's exit code, which is 125 for commands that exit with a remote command's exit code. */
function exitCodeOf(error: CliError, { command }: Run): number {
  const runsCommand = ['exec', 'attach'].includes(command?.name() ?? '') || command?.opts().rm === true
  return runsCommand && error.exitCode !== exitCodes.interrupted ? exitCodes.execFailed : error.exitCode
}

/** Finds --json and --color in unparsed arguments, so that usage errors are formatted correctly. */
function guessOutput(args: string[]): Output {
  const end = args.indexOf('--')
  const before = args.slice(0, end < 0 ? undefined : end)
  const color = colorChoices.find((choice) => before.includes(`--color=${choice}`))
  return createOutput({ json: before.some((word) => /^--json(=|$)/.test(word)), color })
}

/** Exits if writing to stdout fails. Ignores EPIPE, which is expected with `| head`. */
function handleOutputErrors(fail: (error: unknown) => number): void {
  process.stderr.on('error', () => {})
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return
    void leave(fail(new CliError('output_failed', `Writing to stdout failed: ${error.message}`)))
  })
}
