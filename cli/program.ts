/** The command line: finds the command that was asked for, loads it alone, and ends in an exit code. */
import { Command, CommanderError } from 'commander'
import { addCommonOptions, type CommonOptions, optionsOf } from './command.ts'
import { type Branch, commands, type Leaf } from './commands/index.ts'
import { CliError, describeError, exitCodes } from './errors.ts'
import { createOutput } from './output.ts'
import { version } from './version.ts'

/**
 * Runs one command line.
 * @param args without Node and the script
 * @returns the exit code; everything is printed by then
 */
export async function runProgram(args: string[]): Promise<number> {
  const run: Run = { command: '', code: exitCodes.done, json: wantsJson(args) }
  const fail = (error: unknown) => {
    const problem = describeError(error)
    createOutput(run.json).fail(problem, exitCodeOf(problem, run))
    return exitCodeOf(problem, run)
  }
  process.once('SIGINT', () => process.exit(fail(new CliError('interrupted', 'Interrupted.'))))
  surviveClosedOutput(fail)
  try {
    // `sandlot help session create` is `sandlot session create --help`: the one that loads the command.
    await createProgram(run).parseAsync(args[0] === 'help' ? [...args.slice(1), '--help'] : args, {
      from: 'user',
    })
    return run.code
  } catch (error) {
    if (!(error instanceof CommanderError)) return fail(error)
    if (error.exitCode === 0) return exitCodes.done
    // Commander has explained it on stderr; only a reader of JSON has heard nothing yet.
    const problem = new CliError('usage', messageOf(error))
    createOutput(run.json).failSilently(problem, exitCodeOf(problem, run))
    return exitCodeOf(problem, run)
  }
}

/** What is known of the run so far. */
interface Run {
  command: string
  code: number
  json: boolean
}

function createProgram(run: Run): Command {
  const program = new Command('sandlot')
    .description('Short-lived, isolated sandboxes: create one, run commands in it, work with its files.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command...]', 'show help')
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'sandlot: ')) })
    .showHelpAfterError('`--help` shows how.')
    .addHelpText('after', footer)
    .hook('preAction', (_, command) => {
      run.command = command.name()
      run.json = optionsOf<CommonOptions>(command).json === true
    })
  addCommonOptions(program)
  addCommands(program, commands, run)
  return program
}

const footer = `
Settings: a flag, then SANDLOT_URL, SANDLOT_API_KEY and SANDLOT_SESSION, then the file of \`sandlot config show\`.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such thing, 4 credentials, 5 ambiguous or conflicting,
  6 a quota, 7 a rate limit, 8 network or server, 130 interrupted; \`sandlot exec --help\` lists its own.`

/** Names and summaries are there at once; options and action come when the command is called. */
function addCommands(parent: Command, branch: Branch, run: Run): void {
  const leaves = new Map<Command, Leaf>()
  for (const [name, entry] of Object.entries(branch)) {
    const command = parent.command(name).description(entry.summary)
    if ('commands' in entry) addCommands(command, entry.commands, run)
    else leaves.set(command, entry)
  }
  parent.hook('preSubcommand', async (_, command) => {
    run.command = command.name()
    const leaf = leaves.get(command)
    if (leaf === undefined) return
    const { define } = await leaf.load()
    addCommonOptions(command)
    define(command, (code) => {
      run.code = code
    })
  })
}

/** Commander's help for a group without a command is an error without words. */
const messageOf = ({ code, message }: CommanderError): string =>
  code === 'commander.help' ? 'A command is missing.' : message.replace(/^error: /, '')

/** `exec` keeps every code but its own few for the command it runs. */
const exitCodeOf = (error: CliError, run: Run): number =>
  run.command === 'exec' && error.exitCode !== exitCodes.interrupted ? exitCodes.execFailed : error.exitCode

/** A guess until the line is parsed, so that even a wrong one is answered in JSON. */
const wantsJson = (args: string[]): boolean => {
  const end = args.indexOf('--')
  return args.slice(0, end < 0 ? undefined : end).includes('--json')
}

/** A reader that has seen enough (`| head`) is no failure; a full disk is. */
function surviveClosedOutput(fail: (error: unknown) => number): void {
  process.stderr.on('error', () => {})
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return
    process.exitCode = fail(new CliError('output_failed', `Writing to stdout failed: ${error.message}`))
    process.exit()
  })
}
