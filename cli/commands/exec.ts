/** `sandlot exec`: a command in a session, with its stdin, stdout, stderr and exit code passed through. */
import type { ExecEnd, ExecRequest } from '../../shared/contract/exec.ts'
import { addSessionOption, collect, defineCommand, type Invocation } from '../core/command.ts'
import { CliError, exitCodes } from '../core/errors.ts'
import { decodeUtf8, hasPipedInput } from '../core/input.ts'
import { readDuration, readPairs } from '../core/parse.ts'
import { execFields } from '../core/shapes.ts'
import { defaultDetachKeys, readDetachKeys } from '../exec/detach-keys.ts'
import { exitCodeOf, sayEnd } from '../exec/ending.ts'
import { Input } from '../exec/input.ts'
import { print } from '../exec/print.ts'
import { createRemote, type Remote } from '../exec/remote.ts'
import { runStreaming, sendInput } from '../exec/stream.ts'
import { runSubcommand } from '../exec/subcommands.ts'

interface Options {
  shell?: string
  cwd?: string
  env?: string[]
  timeout?: string
  grace?: string
  reveal?: boolean
  /** undefined: when something is piped in */
  stdin?: boolean
  tty?: boolean
  background?: boolean
  attach?: string
  detachKeys: string
}

/** Input that is available at once travels with the command: one request instead of three. */
const inline = { bytes: 64 * 1024, ms: 50 }

export const define = defineCommand<Options>({
  declare: (command) =>
    addSessionOption(command)
      .usage(
        `[options] [--] COMMAND [ARG…]
       sandlot exec [options] -c SCRIPT
       sandlot exec ls | logs [-f] EXEC_ID | kill [--signal TERM] EXEC_ID`,
      )
      .argument('[command...]')
      .passThroughOptions()
      .option('-c, --shell <script>', 'run a script with /bin/sh -c instead of a command')
      .option('--cwd <path>', 'the directory to run in, relative to /workspace or absolute')
      .option('--env <name=value>', 'a variable; may be given several times', collect)
      .option(
        '--timeout <duration>',
        'when to end it, such as 30s or 10m; by default with the session, after 60s with --json',
      )
      .option(
        '--grace <duration>',
        'how long it goes on when this client is lost; by default 10s, 2s with --json',
      )
      .option('--reveal', 'show secrets in its output, not [secret NAME]')
      .option('-i, --stdin', 'send stdin; the default when something is piped in')
      .option('-n, --no-stdin', 'send no stdin')
      .option('-t, --tty', 'give it a terminal, for shells and editors: exec -it -- bash')
      .option('--background', 'print its id and leave it running')
      .option('--attach <exec-id>', 'go back to a command that was started with -t')
      .option(
        '--detach-keys <keys>',
        'with -t: the keys that leave the command running, or none',
        defaultDetachKeys,
      ),
  notes: `
Options after the command are the command's own. Output and stdin pass byte for byte, as they come. When the
connection breaks, the client connects again and goes on where it broke. Ctrl-C interrupts the command; a
second Ctrl-C leaves it. At a terminal, stdin is sent with -i alone.

With -t, Ctrl-P Ctrl-Q leaves the command running and says how to go back to it. A shell that has no prompt of
its own shows the name of its session.

\`exec ls\` lists the commands of the session, \`exec logs\` prints what one has printed, and \`exec kill\` signals
one; \`exec ls --help\` and so on tell more. They are meant only when

  ls          is followed by nothing but its own options
  logs, kill  are followed by an id (exec_…), or by nothing but their own options

and no option but --session and the global ones stands before them. Any other line runs the program of that
name, as \`exec ls -la\` and \`exec kill -9 42\` do. Behind -- every word is a program: \`exec -- ls\`. Scripts should
write the --.

Exit codes: the command's own; 124 it timed out; 125 the client or the service failed, or the usage was
wrong; 126 and 127 it could not be run; 128+n signal n ended it; 130 interrupted.`,
  examples: [
    'sandlot exec -- ls -la',
    "sandlot exec -c 'cd src && make' --timeout 10m",
    'sandlot exec -it -- bash',
    'echo 21 | sandlot exec --json=exit_code,stdout -- awk "{ print 2 * \\$1 }"',
  ],
  fields: execFields,
  handle: async (invocation) => {
    const { command, exitWith } = invocation
    if (await runSubcommand(command, exitWith)) return
    exitWith(await execute(invocation))
  },
})

/** @returns the exit code */
async function execute(invocation: Invocation<Options>): Promise<number> {
  const { args, options, settings, session, api, output } = invocation
  const wantsTerminal = options.tty === true || options.attach !== undefined
  if (wantsTerminal) mustBeTerminal(options)
  const request = options.attach === undefined ? readRequest(args, options) : undefined
  // Wrong settings should be reported before we wait for stdin.
  await settings.apiKey(await settings.baseUrl())
  const remote = createRemote(api, await session())
  if (wantsTerminal) return await useTerminal(invocation, remote, request)
  const input = (options.stdin ?? hasPipedInput()) ? new Input(process.stdin) : undefined
  if (options.background) return await leaveRunning(invocation, remote, request!, input)

  const stdin = await readInline(input)
  const feeding = stdin === undefined ? input : undefined
  const body = { ...request!, stdin }
  const streaming = { remote, request: body, input: feeding, note: output.note }
  if (!output.json) return finish(invocation, await runStreaming({ ...streaming, write: print }))
  const result = feeding ? await remote.get((await runStreaming(streaming)).id) : await remote.run(body)
  output.result(result, '')
  return exitCodeOf(result)
}

function mustBeTerminal({ background, tty }: Options): void {
  if (background) {
    const option = tty ? '-t' : '--attach'
    throw new CliError(
      'usage',
      `${option} keeps this terminal until the command ends, and --background does not.`,
      {
        hint: 'Give one of them.',
      },
    )
  }
  if (process.stdin.isTTY) return
  throw new CliError('usage', '-t needs a terminal, and stdin is not one.', {
    hint: 'Leave -t out: what is piped in is sent to the command anyway.',
  })
}

function readRequest(args: string[], options: Options): ExecRequest {
  const env = readPairs(options.env, '--env')
  const timeout_ms = options.timeout === undefined ? undefined : readDuration(options.timeout, '--timeout')
  const grace_ms = options.grace === undefined ? undefined : readDuration(options.grace, '--grace')
  const { cwd, reveal } = options
  return { command: readCommand(args, options.shell), cwd, env, timeout_ms, grace_ms, reveal }
}

function readCommand(args: string[], script: string | undefined): string | string[] {
  if (script === undefined && args.length > 0) return args
  if (script !== undefined && script !== '' && args.length === 0) return script
  throw new CliError('usage', 'Give either a command, or a script with -c.', {
    hint: '`sandlot exec --help` shows how.',
  })
}

/**
 * @param request what to start; undefined for `--attach`, whose command already runs
 * @returns the exit code
 */
async function useTerminal(
  invocation: Invocation<Options>,
  remote: Remote,
  request: ExecRequest | undefined,
): Promise<number> {
  const { options, output } = invocation
  const { attachTerminal, wayBack } = await import('../exec/terminal.ts')
  const detachKeys = readDetachKeys(options.detachKeys)
  const { note } = output
  const execId = request ? await launch(invocation, remote, request) : options.attach!
  const ended = await attachTerminal(remote, execId, { note, isNew: request !== undefined, detachKeys })
  if (ended !== 'detached') return finish(invocation, ended)
  if (output.json) output.result(await remote.get(execId), '')
  note(`sandlot: detached, and the command goes on. ${wayBack(remote, execId)}.`)
  return exitCodes.done
}

async function launch({ api }: Invocation<Options>, remote: Remote, request: ExecRequest): Promise<string> {
  const { launchTerminal } = await import('../exec/launch-terminal.ts')
  const findName = async () => (await api.call('getSandbox', { params: { id: remote.sessionId } })).name
  return await launchTerminal(remote, request, findName)
}

async function leaveRunning(
  { output }: Invocation<Options>,
  remote: Remote,
  request: ExecRequest,
  input: Input | undefined,
): Promise<number> {
  const result = await remote.launch(request)
  output.result(result, `${result.id}\n`)
  if (input) await sendInput(remote, result.id, input, output.note)
  else await remote.endStdin(result.id, 0).catch(() => {})
  return exitCodes.done
}

/** @returns undefined for input that has to be streamed */
async function readInline(input: Input | undefined): Promise<string | undefined> {
  const bytes = await input?.whole(inline.bytes, inline.ms)
  return bytes && decodeUtf8(bytes)
}

function finish({ output }: Invocation<Options>, ended: ExecEnd): number {
  if (output.json) output.result(ended, '')
  else sayEnd(ended, output.note)
  return exitCodeOf(ended)
}
