import type { ExecRequest } from '../../shared/contract/exec.ts'
import { shellLine, shellWord } from '../../shared/contract/shell-words.ts'
import { addSessionOption, collect, defineCommand, type Invocation } from '../core/command.ts'
import { CliError, exitCodes } from '../core/errors.ts'
import { decodeUtf8, hasPipedInput } from '../core/input.ts'
import { readDuration, readPairs } from '../core/parse.ts'
import { listActive } from '../core/session.ts'
import { execFields } from '../core/shapes.ts'
import { readDetachKeys } from '../exec/detach-keys.ts'
import { exitCodeOf, finish } from '../exec/exit-status.ts'
import { Input } from '../exec/input.ts'
import { addDetachKeys, requireTerminal, stayAttached } from '../exec/on-terminal.ts'
import { print } from '../exec/print.ts'
import { createRemote, type Remote } from '../exec/remote.ts'
import { noteSharedStdin } from '../exec/shared-stdin.ts'
import { runStreaming, sendInput } from '../exec/stream.ts'

interface Options {
  shell?: string
  cwd?: string
  env?: string[]
  timeout?: string
  grace?: string
  reveal?: boolean
  /** undefined: depends on whether stdin is a pipe or a file */
  stdin?: boolean
  tty?: boolean
  background?: boolean
  detachKeys: string
}

/** Programs that are interactive without arguments. */
const talking = /^(?:.*\/)?(?:(?:ba|da|a|z|fi)?sh|python3?|node|irb|psql)$/

/** Input that is available immediately travels with the request. */
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
      .option('-n, --no-stdin', 'send no stdin, so that a `while read` loop keeps it')
      .option('-t, --tty', 'give it a terminal, for shells and editors: exec -it -- bash')
      .option('-d, --background', 'print its id and leave it running')
    addDetachKeys(command, 'with -t: ')
  },
  notes: `
Options after the command are the command's own. Output and stdin pass byte for byte, as they come. When the
connection breaks, the client connects again and goes on where it broke. Ctrl-C interrupts the command; a
second Ctrl-C leaves it. At a terminal, stdin is sent only with -i. A pipe or a file is read until EOF, as with
ssh: use -n in a \`while read\` loop and in a script that a shell reads from stdin.

With -t, Ctrl-P Ctrl-Q leaves the command running and says how to go back to it. A shell that has no prompt of
its own shows the name of its session.

Every word behind the options is the command, whatever its name. \`sandlot ps\` lists the commands of a session,
\`logs\` prints what one has printed, \`kill\` signals one, and \`attach\` goes back to its terminal.

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
    const code = await execute(invocation)
    if (code === notFound) await suggestSession(invocation)
    invocation.exitWith(code)
  },
})

/** Exit code for a missing command. */
const notFound = 127

/** `docker exec` takes a name first, so a session's name may have been typed as the command. */
async function suggestSession({ args, api, output }: Invocation<Options>): Promise<void> {
  const [first = '', ...command] = args
  if (command.length === 0 || output.json || output.quiet) return
  const active = await listActive(api).catch(() => [])
  if (!active.some(({ id, name }) => first === name || first === id)) return
  const line = shellLine('sandlot', 'exec', '--session', first, ...command)
  output.note(`There is a session ${JSON.stringify(first)}: ${line}`)
}

/** @returns the exit code */
async function execute(invocation: Invocation<Options>): Promise<number> {
  const { args, options, settings, session, api, output } = invocation
  if (options.tty) requireTerminalOptions(options)
  const request = readRequest(args, options)
  // Report wrong settings before waiting for stdin.
  await settings.apiKey(await settings.baseUrl())
  const remote = createRemote(api, await session())
  if (options.tty) return await useTerminal(invocation, remote, request)
  const input = (options.stdin ?? hasPipedInput()) ? new Input(process.stdin) : undefined
  if (!input && !options.background) noteNoTerminal(args, output.aside)
  const code = await runWithoutTerminal(invocation, remote, request, input)
  if (input && options.stdin === undefined) {
    const advice =
      'Use -n to leave it to the shell, as in a `while read` loop, or -i to send it without this note.'
    noteSharedStdin(input, advice, output.note)
  }
  return code
}

/** @returns the exit code */
async function runWithoutTerminal(
  invocation: Invocation<Options>,
  remote: Remote,
  request: ExecRequest,
  input: Input | undefined,
): Promise<number> {
  const { options, output } = invocation
  if (options.background) return await leaveRunning(invocation, remote, request, input)
  const stdin = await readInline(input)
  const feeding = stdin === undefined ? input : undefined
  const body = { ...request, stdin }
  const streaming = { remote, request: body, input: feeding, note: output.note }
  if (!output.json) return finish(await runStreaming({ ...streaming, write: print }), output)
  const result = feeding ? await remote.get((await runStreaming(streaming)).id) : await remote.run(body)
  output.result(result, '')
  return exitCodeOf(result)
}

/** @throws {CliError} `usage` */
function requireTerminalOptions({ background, detachKeys }: Options): void {
  if (background) {
    throw new CliError('usage', '-t keeps this terminal until the command ends, and --background does not.', {
      hint: 'Give one of them.',
    })
  }
  requireTerminal('-t', 'Leave -t out: what is piped in is sent to the command anyway.')
  // Report wrong keys before the command starts.
  readDetachKeys(detachKeys)
}

/** Without -it, docker and kubectl give no terminal either, and the shell exits silently. */
function noteNoTerminal(args: string[], say: (text: string) => void): void {
  const [program = '', ...more] = args
  if (more.length > 0 || !talking.test(program) || !process.stdin.isTTY) return
  say(`${program} gets no input here; \`sandlot exec -it -- ${shellWord(program)}\` gives it this terminal.`)
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

/** @returns the exit code */
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
  output.aside(`It goes on. \`${line('logs', '-f')}\` follows it, and \`${line('kill')}\` ends it.`)
  if (input) await sendInput(remote, result.id, input, output.note)
  else await remote.endStdin(result.id, 0).catch(() => {})
  return exitCodes.done
}

/** @returns undefined for input that must be streamed */
async function readInline(input: Input | undefined): Promise<string | undefined> {
  const bytes = await input?.whole(inline.bytes, inline.ms)
  return bytes && decodeUtf8(bytes)
}
