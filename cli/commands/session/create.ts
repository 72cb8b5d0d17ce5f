import { randomUUID } from 'node:crypto'
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
  ttl?: string
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
      .option('--image <image>', "the image; by default the service's own")
      .option('--name <name>', 'a name to know it by')
      .option('--ttl <duration>', 'how long it may live, such as 10m; a bare number is seconds')
      .option('--metadata <name=value>', 'a label; may be given several times', collect)
      .option('--env <name=value>', 'a variable for its commands; may be given several times', collect)
      .option('--async', 'do not wait until it is ready')
      .option('--wait', 'wait while a quota or a rate limit is in the way')
      .option('--rm', 'run the command in it, then destroy it, whatever happens')
      .option('--idempotency-key <key>', 'within a day, the same key and options give the same session'),
  notes: `
With --rm stdin, stdout, stderr and Ctrl-C are the command's, as with \`sandlot exec\`. The exit code is the
command's own, or 125 when it never ran; 124, 126, 127, 128+n and 130 mean what they do for exec.`,
  examples: [
    'sandlot session create --name build --ttl 10m',
    'id=$(sandlot session create --wait --quiet)',
    'sandlot session create --rm -- python3 -c "print(6 * 7)"',
    'tar c . | sandlot session create --rm --wait -- sh -c "tar x && make test"',
  ],
  fields: ({ rm }) => (rm ? ['sandbox_id', ...execFields] : sandboxFields),
  handle: async (invocation) => {
    const { args, options, exitWith } = invocation
    if (options.rm) {
      if (args.length === 0) throw new CliError('usage', 'Give a command: session create --rm -- COMMAND.')
      const { runOnce } = await import('./run-once.ts')
      return exitWith(await runOnce(invocation, prepareCreate(invocation), args))
    }
    if (args.length > 0) throw misplaced(args)
    await create(invocation)
  },
})

/** Other tools take a name as the argument. */
function misplaced(args: string[]): CliError {
  const words = shellLine(...args)
  const [isOne, name] = [args.length === 1, shellWord(args[0]!)]
  const named = isOne ? `\`sandlot session create --name ${name}\` makes a session with this name, and ` : ''
  return new CliError('usage', `${words} stands where a command does, and a command needs --rm.`, {
    hint: `${named}\`sandlot session create --rm -- ${words}\` runs ${isOne ? 'this program' : 'it'} in a session of its own.`,
  })
}

async function create(invocation: Invocation<Options>): Promise<void> {
  const { output, settings } = invocation
  const sandbox = await prepareCreate(invocation).create()
  output.result(sandbox, `${sandbox.id}\n`)
  if (sandbox.ready_at === null) output.aside('It is still starting; its first command waits for it.')
  const which = sandbox.name === null ? '' : ` -s ${shellWord(sandbox.name)}`
  output.aside(
    `It ends ${showTime(sandbox.expires_at)}. Next: ${settings.ownCall()} exec${which} -- uname -a`,
  )
}

function prepareCreate({ options, api, output }: Invocation<Options>): Creation {
  const body = readBody(options)
  // The key makes it safe to repeat a request whose reply was lost.
  const key = options.idempotencyKey ?? randomUUID()
  /** `unknown` until a reply arrives: the session may exist. */
  let session: Reply<'createSandbox'> | 'unknown' | undefined
  async function request(async: boolean): Promise<Reply<'createSandbox'>> {
    const created = await api.call('createSandbox', {
      body,
      headers: { 'idempotency-key': key, ...(async && { prefer: 'respond-async' }) },
      timeoutMs: limits.createWaitMs + 30_000,
    })
    session = created
    return created
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
      return await waitOut(api, attempt, { note: output.note, say: progress.say })
    },
    find: async () => (session === 'unknown' ? await request(true) : session),
  }
}

/** Whether the error means that no session exists. */
function isRefusal(error: unknown): boolean {
  if (error instanceof ConnectionError) return !error.reached
  if (!(error instanceof CliError)) return false
  return error.code === 'sandbox_start_failed' || Number(error.details.status) < 500
}

function readBody({ image, name, ttl, ...options }: Options): NonNullable<Request<'createSandbox'>['body']> {
  return {
    image,
    name,
    metadata: readPairs(options.metadata, '--metadata'),
    env: readPairs(options.env, '--env'),
    ttl_seconds: ttl === undefined ? undefined : readSeconds(ttl, '--ttl'),
  }
}
