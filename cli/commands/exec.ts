import type { ExecRequest } from '../../shared/contract/exec.ts'
import { limits } from '../../shared/contract/limits.ts'
import { shellLine, shellWord } from '../../shared/contract/shell-words.ts'
import { addSessionOption, collect, defineCommand, type Invocation } from '../core/command.ts'
import { CliError, exitCodes } from '../core/errors.ts'
import { decodeUtf8, hasPipedInput } from '../core/input.ts'
import { readDuration, readPairs } from '../core/parse.ts'
import { listActive } from '../core/session.ts'
import { execFields } from '../core/shapes.ts'
import { readDetachKeys } from '../exec/detach-keys.ts'
import { exitCodeOf, finish } from '../exec/exit-status.ts'
import { sendInput } from '../exec/feed.ts'
import { Input, noteSharedStdin } from '../exec/input.ts'
import { addDetachKeys, requireTerminal, stayAttached } from '../exec/on-terminal.ts'
import { print } from '../exec/print.ts'
import { createRemote, type Remote } from '../exec/remote.ts'
import { runStreaming } from '../exec/stream.ts'

interface Options {
  shell?: string
  cwd?: string
  env?: string[]
  timeout?: string
  grace?: string
  reveal?: boolean
  stdin?: boolean
  tty?: boolean
  background?: boolean
  detachKeys: string
}

const interactivePrograms = /^(?:.*\/)?(?:(?:ba|da|a|z|fi)?sh|python3?|node|irb|psql)$/

/** Piped input that ends within these limits is sent in the exec request. Any other input is streamed. */
const inline = { bytes: 64 * 1024, ms: 50 }

export const define = defineCommand<Options>({
  declare: (command) => {
    addSessionOption(command)
      .usage(
        `[options] [--] COMMAND [ARG…]
       sandlot exec [options] -c SCRIPT`,
      )
      .argument('[command...]')
      .passThroughOptions()
      .option('-c, --shell <script>', 'run a script with /bin/sh -c instead of a command')
      .option('--cwd <path>', 'the working directory, relative to /workspace or absolute')
      .option('--env <name=value>', 'an environment variable; may be repeated', collect)
      .option(
        '--timeout <duration>',
        'the time limit, such as 30s or 10m; by default until the session ends, 60s with --json',
      )
      .option(
        '--grace <duration>',
        'how long the command keeps running after this client disconnects; by default 10s, 2s with --json',
      )
      .option('--reveal', 'show secrets in the output instead of [secret NAME]')
      .option('-i, --stdin', 'send stdin; the default if stdin is a pipe or a file')
      .option('-n, --no-stdin', 'do not read stdin, for example in a `while read` loop')
      .option('-t, --tty', 'allocate a terminal, for shells and editors: exec -it -- bash')
      .option('-d, --background', 'run the command in the background and print its id')
    addDetachKeys(command, 'with -t: ')
  },
  notes: `
Options after the command belong to the command. Output and stdin are streamed byte for byte. If the connection
breaks, the client reconnects and resumes at the same byte. Ctrl-C interrupts the command; a second Ctrl-C exits the
client. At a terminal, stdin is sent only with -i. A pipe or a file is read until EOF, as with ssh: use -n in a
\`while read\` loop and in a script that a shell reads from stdin.

With -t, Ctrl-P Ctrl-Q detaches, and prints the command that attaches again. A shell without its own prompt shows the
name of its session.

Every word after the options belongs to the command. \`sandlot ps\` lists the commands of a session. \`logs\` prints
a command's output, \`kill\` sends a signal to a command, and \`attach\` connects to a command's terminal.

Exit codes: the command's own; 124 timeout; 125 the client or the service failed, or the usage was wrong; 126 and 127
the command could not be run; 128+n terminated by signal n; 130 interrupted.`,
  examples: [
    'sandlot exec -- ls -la',
    "sandlot exec -c 'cd src && make' --timeout 10m",
    'sandlot exec -it -- bash',
    'echo 21 | sandlot exec --json=exit_code,stdout -- awk "{ print 2 * \\$1 }"',
  ],
  fields: execFields,
  handle: async (invocation) => {
    const code = await execute(invocation)
    const isNotFound = code === 127
    if (isNotFound) await suggestSession(invocation)
    invocation.exitWith(code)
  },
})

/** Suggests a corrected command line if the first word is a session's name or id, as in `docker exec`. */
async function suggestSession({ args, api, output }: Invocation<Options>): Promise<void> {
  const [first = '', ...command] = args
  if (command.length === 0 || output.json || output.quiet) return
  const active = await listActive(api).catch(() => [])
  if (!active.some(({ id, name }) => first === name || first === id)) return
  const line = shellLine('sandlot', 'exec', '--session', first, ...command)
  output.note(`To run it in session ${JSON.stringify(first)}: ${line}`)
}

async function execute(invocation: Invocation<Options>): Promise<number> {
  const { args, options, settings, session, api, output } = invocation
  if (options.tty) requireTerminalOptions(options)
  const request = readRequest(args, options)
  // Reports invalid settings before waiting for stdin.
  await settings.apiKey(await settings.baseUrl())
  const remote = createRemote(api, await session())
  if (options.tty) return await useTerminal(invocation, remote, request)
  const input = (options.stdin ?? hasPipedInput()) ? new Input(process.stdin) : undefined
  if (!input && !options.background) noteNoTerminal(args, output.aside)
  const code = await runWithoutTerminal(invocation, remote, request, input)
  const advice =
    'Use -n to leave stdin untouched, for example in a `while read` loop. Use -i to send stdin and hide this note.'
  if (input && options.stdin === undefined) noteSharedStdin(input, advice, output.note)
  return code
}

async function runWithoutTerminal(
  invocation: Invocation<Options>,
  remote: Remote,
  request: ExecRequest,
  input: Input | undefined,
): Promise<number> {
  const { options, output } = invocation
  if (options.background) return await leaveRunning(invocation, remote, request, input)
  const bytes = await input?.whole(inline.bytes, inline.ms)
  const stdin = bytes && decodeUtf8(bytes)
  const feeding = stdin === undefined ? input : undefined
  const streaming = { remote, request: { ...request, stdin }, input: feeding, note: output.note }
  if (!output.json) return finish(await runStreaming({ ...streaming, write: print }), output)
  const { timeout_ms = limits.execTimeoutMs, grace_ms = limits.graceMs.default } = request
  const body = { ...streaming.request, timeout_ms, grace_ms }
  const result = feeding
    ? await remote.get((await runStreaming({ ...streaming, request: body })).id)
    : await remote.run(body)
  output.result(result, '')
  return exitCodeOf(result)
}

function requireTerminalOptions({ background, detachKeys }: Options): void {
  if (background) {
    throw new CliError('usage', '-t and --background are mutually exclusive.', {
      hint: 'Use only one of them.',
    })
  }
  requireTerminal('-t', 'To send piped input to the command, omit -t.')
  // Reports invalid keys before the command starts.
  readDetachKeys(detachKeys)
}

/** Suggests -it for an interactive program, which would otherwise read EOF and exit silently. */
function noteNoTerminal(args: string[], note: (text: string) => void): void {
  const [program = '', ...more] = args
  if (more.length > 0 || !interactivePrograms.test(program) || !process.stdin.isTTY) return
  note(
    `${program} is running without input. To use it interactively, run \`sandlot exec -it -- ${shellWord(program)}\`.`,
  )
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
  throw new CliError('usage', 'Pass either a command, or a script with -c.', {
    hint: 'See `sandlot exec --help`.',
  })
}

async function useTerminal(
  { options, api, output }: Invocation<Options>,
  remote: Remote,
  request: ExecRequest,
): Promise<number> {
  const { launchTerminal } = await import('../exec/launch-terminal.ts')
  const findName = async () => (await api.call('getSandbox', { params: { id: remote.sessionId } })).name
  const execId = await launchTerminal(remote, request, findName)
  return await stayAttached(remote, execId, { ...options, output, isNew: true })
}

async function leaveRunning(
  { output }: Invocation<Options>,
  remote: Remote,
  request: ExecRequest,
  input: Input | undefined,
): Promise<number> {
  const result = await remote.launch(request)
  output.result(result, `${result.id}\n`)
  const line = (...words: string[]) => shellLine('sandlot', ...words, '-s', remote.sessionId, result.id)
  output.aside(
    `The command is running in the background. \`${line('logs', '-f')}\` follows its output, and \`${line('kill')}\` ends it.`,
  )
  if (input) await sendInput(remote, result.id, input, output.note).finally(() => input.close())
  else await remote.endStdin(result.id, 0).catch(() => {})
  return exitCodes.done
}
