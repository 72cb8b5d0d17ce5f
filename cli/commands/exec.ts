/** `sandlot exec`: a command in a session, with its stdin, stdout, stderr and exit code passed through. */
import { constants } from 'node:os'
import { limits } from '../../shared/contract/limits.ts'
import type { Reply } from '../api.ts'
import { addSessionOption, collect, type Define, handleWith, type Invocation } from '../command.ts'
import { CliError, exitCodes } from '../errors.ts'
import { decodeUtf8, hasPipedInput, readInput } from '../input.ts'
import { readDuration, readPairs } from '../parse.ts'
import { selectSession } from '../session.ts'

interface Options {
  shell?: string
  cwd?: string
  env?: string[]
  timeout?: string
  /** undefined: when something is piped in */
  stdin?: boolean
}

export const define: Define = (command, exitWith) => {
  addSessionOption(command)
    .usage('[options] [--] COMMAND [ARG…]\n       sandlot exec [options] -c SCRIPT')
    .argument('[command...]')
    .passThroughOptions()
    .option('-c, --shell <script>', 'run a script with /bin/sh -c instead of a command')
    .option('--cwd <path>', 'the directory to run in, relative to /workspace or absolute')
    .option('--env <name=value>', 'a variable; may be given several times', collect)
    .option('--timeout <duration>', 'such as 500ms, 30s, 10m; 60s by default')
    .option('-i, --stdin', 'send stdin; the default when something is piped in')
    .option('-n, --no-stdin', 'send none')
    .addHelpText(
      'after',
      `
Options after the command are the command's. Stdin is read whole and sent as UTF-8 text.

Exit codes: the command's own; 124 it timed out; 125 the client or the service failed, wrong usage
included; 126 and 127 it could not be run; 128+n it was ended by signal n; 130 interrupted.`,
    )
  handleWith<Options>(command, async (invocation) => {
    const result = await execute(invocation)
    if (invocation.output.json) invocation.output.result(result, '')
    else print(result, invocation.output.note)
    exitWith(exitCodeOf(result))
  })
}

async function execute({ args, options, settings, api, output }: Invocation<Options>) {
  const command = readCommand(args, options.shell)
  const env = readPairs(options.env, '--env')
  const timeout_ms = options.timeout === undefined ? undefined : readDuration(options.timeout, '--timeout')
  // Settings that are wrong should be told before stdin is waited for.
  await settings.baseUrl()
  await settings.apiKey()
  const stdin = (options.stdin ?? hasPipedInput()) ? await readText(output.note) : undefined
  const id = await selectSession(settings, api)
  return api.call('execCommand', {
    params: { id },
    body: { command, ...defined({ cwd: options.cwd, env, timeout_ms, stdin }) },
    // The command's time, the wait for a sandbox that starts, and the way there and back.
    timeoutMs: (timeout_ms ?? limits.execTimeoutMs) + limits.startingWaitMs + 30_000,
  })
}

function readCommand(args: string[], script: string | undefined): string | string[] {
  if (script === undefined && args.length > 0) return args
  if (script !== undefined && script !== '' && args.length === 0) return script
  throw new CliError('usage', 'Give either a command, or a script with -c.', {
    hint: '`sandlot exec --help` shows how.',
  })
}

async function readText(note: (text: string) => void): Promise<string> {
  const text = decodeUtf8(await readInput(note, '--no-stdin sends none.'))
  if (text !== undefined) return text
  throw new CliError('usage', 'stdin is not UTF-8 text, and this version sends no other.', {
    hint: 'Write the bytes to a file with `sandlot files create PATH`, and read that.',
  })
}

function print(result: Reply<'execCommand'>, note: (text: string) => void): void {
  process.stdout.write(result.stdout)
  process.stderr.write(result.stderr)
  if (result.truncated) {
    note(
      `sandlot: the output was cut: ${result.stdout_bytes} bytes on stdout, ${result.stderr_bytes} on stderr.`,
    )
  }
  if (result.status === 'timed_out') note(`sandlot: timed out after ${Math.round(result.duration_ms)} ms`)
  if (result.status === 'lost')
    note('sandlot: the command was lost: how it ended, or whether it ran, is not known.')
  if (result.status === 'killed') note('sandlot: the command was killed.')
}

function exitCodeOf({ status, exit_code, signal }: Reply<'execCommand'>): number {
  if (status === 'timed_out') return exitCodes.execTimedOut
  if (status === 'exited' && exit_code !== null) return exit_code
  const number = constants.signals[signal as NodeJS.Signals] as number | undefined
  if ((status === 'signaled' || status === 'killed') && number !== undefined) return 128 + number
  return exitCodes.execFailed
}

/** Without the entries that are undefined. */
const defined = <T extends object>(entries: T) =>
  Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
