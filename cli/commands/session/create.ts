import { limits } from '../../../shared/contract/limits.ts'
import { shellLine, shellWord } from '../../../shared/contract/shell-words.ts'
import type { Reply, Request } from '../../core/api.ts'
import { collect, defineCommand, type Invocation } from '../../core/command.ts'
import { CliError } from '../../core/errors.ts'
import { ConnectionError } from '../../core/http.ts'
import { readPairs, readSeconds } from '../../core/parse.ts'
import { execFields, sandboxFields } from '../../core/shapes.ts'
import { showTime } from '../../core/times.ts'
import type { Creation } from './run-once.ts'

interface Options {
  image?: string
  name?: string
  reuse?: boolean
  ttl?: string
  idleTimeout?: string
  metadata?: string[]
  env?: string[]
  idempotencyKey?: string
  async?: boolean
  wait?: boolean
  rm?: boolean
}

export const define = defineCommand<Options>({
  declare: (command) =>
    command
      .usage('[options]\n       sandlot session create --rm [options] -- COMMAND [ARG…]')
      .argument('[command...]')
      .passThroughOptions()
      .option('--image <image>', "the image; by default the service's default image")
      .option('--name <name>', 'a name for the session')
      .option(
        '--reuse',
        'return the active session with this name, if any; its image and environment must match',
      )
      .option('--ttl <duration>', 'the maximum lifetime, such as 10m; a bare number is seconds')
      .option('--idle-timeout <duration>', 'end the session after it has been idle for this long, such as 5m')
      .option('--metadata <name=value>', 'a label; may be repeated', collect)
      .option(
        '--env <name=value>',
        "an environment variable for the session's commands; may be repeated",
        collect,
      )
      .option('--async', 'do not wait until the session is ready')
      .option('--wait', 'wait while a quota or a rate limit is exceeded')
      .option('--rm', 'run a command in the session, then always destroy the session')
      .option(
        '--idempotency-key <key>',
        'a retry with the same key and options within a day returns the same session',
      ),
  notes: `
With --rm, stdin, stdout, stderr and Ctrl-C go to the command, as with \`sandlot exec\`. The exit code is that of the
command, or 125 if it never ran; 124, 126, 127, 128+n and 130 have the same meaning as for exec.`,
  examples: [
    'sandlot session create --name build --ttl 10m --idle-timeout 5m',
    'sandlot session create --name web --reuse',
    'id=$(sandlot session create --wait --quiet)',
    'sandlot session create --rm -- python3 -c "print(6 * 7)"',
    'tar c . | sandlot session create --rm --wait -- sh -c "tar x && make test"',
  ],
  fields: ({ rm }) => (rm ? ['sandbox_id', ...execFields] : sandboxFields),
  handle: async (invocation) => {
    const { args, options, exitWith } = invocation
    if (options.reuse) assertReusable(options)
    if (options.rm) {
      if (args.length === 0)
        throw new CliError('usage', '--rm needs a command: session create --rm -- COMMAND.')
      const { runOnce } = await import('./run-once.ts')
      return exitWith(await runOnce(invocation, prepareCreate(invocation), args))
    }
    if (args.length > 0) throw unexpectedArguments(args)
    await create(invocation)
  },
})

function assertReusable({ name, rm, idempotencyKey }: Options): void {
  if (name === undefined)
    throw new CliError('usage', '--reuse needs a name: session create --name NAME --reuse.')
  const other = rm ? '--rm' : idempotencyKey === undefined ? undefined : '--idempotency-key'
  if (other !== undefined) throw new CliError('usage', `--reuse cannot be combined with ${other}.`)
}

/**
 * Returns a usage error for unexpected arguments. For a single argument, it also suggests --name, because
 * other tools accept a name as an argument.
 */
function unexpectedArguments(args: string[]): CliError {
  const words = shellLine(...args)
  const isOne = args.length === 1
  const named = isOne ? `Use \`sandlot session create --name ${words}\` to name the session, or ` : 'Use '
  return new CliError('usage', `Unexpected ${isOne ? 'argument' : 'arguments'} ${words}.`, {
    hint: `${named}\`sandlot session create --rm -- ${words}\` to run this command in a new session.`,
  })
}

async function create(invocation: Invocation<Options>): Promise<void> {
  const { output, settings } = invocation
  const sandbox = await prepareCreate(invocation).create()
  output.result(sandbox, `${sandbox.id}\n`)
  if (sandbox.ready_at === null)
    output.aside('The session is still starting. Its first command waits until the session is ready.')
  const option = sandbox.name === null ? '' : ` -s ${shellWord(sandbox.name)}`
  output.aside(
    `It ends ${showTime(sandbox.expires_at)}. Next: ${settings.ownCall()} exec${option} -- uname -a`,
  )
}

function prepareCreate({ options, api, output }: Invocation<Options>): Creation {
  const body = readBody(options)
  const { name = '', ...rest } = body
  // The key makes it safe to retry a request whose response was lost.
  const key = options.idempotencyKey ?? crypto.randomUUID()
  /** `unknown` means that a session might exist, but its id was not received. */
  let session: Reply<'createSandbox'> | 'unknown' | undefined
  async function request(async: boolean): Promise<Reply<'createSandbox'>> {
    const common = {
      headers: { 'idempotency-key': key, ...(async && { prefer: 'respond-async' }) },
      timeoutMs: limits.createWaitMs + 30_000,
    }
    session = options.reuse
      ? await api.call('getOrCreateSandbox', { params: { name }, body: rest, ...common })
      : await api.call('createSandbox', { body, ...common })
    return session
  }
  async function attempt(): Promise<Reply<'createSandbox'>> {
    session = 'unknown'
    try {
      return await request(options.async === true)
    } catch (error) {
      if (isRefusal(error)) session = undefined
      throw error
    }
  }
  return {
    async create() {
      using progress = output.progress('creating a session')
      if (!options.wait) return await attempt()
      const { waitOut } = await import('../../core/waiting.ts')
      return await waitOut(api, attempt, { note: output.note, show: progress.show })
    },
    find: async () => (session === 'unknown' ? await request(true) : session),
  }
}

/** True if the error proves that no session was created. The client's own errors have no HTTP status. */
function isRefusal(error: unknown): boolean {
  if (error instanceof ConnectionError) return !error.reached
  if (!(error instanceof CliError)) return false
  const { status = 0 } = error.details
  return error.code === 'sandbox_start_failed' || Number(status) < 500
}

function readBody({
  image,
  name,
  ttl,
  idleTimeout,
  ...options
}: Options): NonNullable<Request<'createSandbox'>['body']> {
  return {
    image,
    name,
    metadata: readPairs(options.metadata, '--metadata'),
    env: readPairs(options.env, '--env'),
    ttl_seconds: ttl === undefined ? undefined : readSeconds(ttl, '--ttl'),
    idle_timeout_seconds: idleTimeout === undefined ? undefined : readSeconds(idleTimeout, '--idle-timeout'),
  }
}
