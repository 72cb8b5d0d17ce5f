/** `sandlot exec` without a terminal: streams output and stdin, and forwards signals. */
import type { ExecOutcome, ExecRequest } from '../../shared/contract/exec.ts'
import { shellLine } from '../../shared/contract/shell-words.ts'
import { addStory, CliError } from '../core/errors.ts'
import type { OpenExchange } from '../core/http.ts'
import { leave as shutDown } from '../core/shutdown.ts'
import { showSeconds } from '../core/times.ts'
import { describeExit, isGone } from './exit-status.ts'
import { feed } from './feed.ts'
import { type Follower, follow } from './follow.ts'
import type { Input } from './input.ts'
import { noteMissing, reconnectNotes } from './print.ts'
import { graceMs, type Remote } from './remote.ts'
import { RetryPolicy, retryBudgetMs } from './retry.ts'

export interface ExecStreamOptions {
  remote: Remote
  request: ExecRequest
  input: Input | undefined
  write?: Follower['write'] | undefined
  note(text: string): void
  /** Default retry budget: the command's grace period, but at least 30 s. */
  retry?: RetryPolicy
}

/** Exit code after EPIPE on stdout. A shell reports the same code for SIGPIPE. */
const closedPipe = 128 + 13

export async function runStreaming({
  remote,
  request,
  input,
  write,
  note,
  ...options
}: ExecStreamOptions): Promise<ExecOutcome> {
  let execId: string | undefined
  const start = remote.streaming(request)
  const grace = request.grace_ms ?? graceMs
  const maxMs = Math.max(retryBudgetMs, grace)
  const { retry = new RetryPolicy({ maxMs }) } = options
  const away = reconnectNotes(note)
  let isUnavailable = false
  const taking = takeSignals({ idOf: () => execId, isUnavailable: () => isUnavailable, remote, note })
  const follower: Follower = {
    onStart(id) {
      execId = id
      taking.begin()
    },
    write: write ?? (async () => {}),
    onGap(missing) {
      if (write) noteMissing(missing, note)
    },
    retry,
    onDisconnect(error) {
      isUnavailable = true
      away.onDisconnect(error)
    },
    onReconnect() {
      isUnavailable = false
      away.onReconnect()
    },
  }
  try {
    const first = await open()
    // The connection may break before the id arrives.
    const reopen = (lastEventId?: string) =>
      execId === undefined ? start() : remote.follow(execId, lastEventId)
    const ended = await follow(first, reopen, follower)
    if (taking.wasTerminated())
      note(`sandlot: the command has ended after SIGTERM was forwarded: ${describeExit(ended)}.`)
    return ended
  } catch (error) {
    if (execId === undefined) throw error
    if (!isGone(error))
      throw explainLostConnection(error, remote, execId, { disconnectedMs: retry.disconnectedMs, grace })
    return await remote.get(execId)
  } finally {
    input?.close()
    taking.end()
  }

  async function open(): Promise<OpenExchange> {
    if (!input) return await start()
    const { id } = await remote.launchFollowed(request)
    follower.onStart(id)
    void sendInput(remote, id, input, note, maxMs)
    return await remote.follow(id)
  }
}

/** Explains that the client was disconnected for longer than the grace period. */
function explainLostConnection(
  error: unknown,
  { sessionId }: Remote,
  execId: string,
  { disconnectedMs, grace }: { disconnectedMs: number; grace: number },
): unknown {
  if (!(error instanceof CliError) || error.code !== 'network') return error
  const [duration, limit] = [showSeconds(disconnectedMs / 1000), showSeconds(grace / 1000)]
  return addStory(
    error,
    `The client was disconnected for ${duration}, longer than the command's grace period of ${limit}. The service therefore kills the command.`,
    `\`${shellLine('sandlot', 'logs', '-s', sessionId, execId)}\` shows its output. \`sandlot exec --grace 5m\` sets a longer grace period.`,
  )
}

/**
 * Sends stdin to the command, and reports a failure with `note`. Drops the remaining input if the command has
 * exited.
 * @param maxMs retry budget of each request, in milliseconds
 */
export async function sendInput(
  remote: Remote,
  id: string,
  input: Input,
  note: (text: string) => void,
  maxMs = retryBudgetMs,
) {
  const stdin = {
    send: (offset: number, bytes: AsyncIterable<Uint8Array>) => remote.feed(id, offset, bytes),
    end: (offset: number) => remote.endStdin(id, offset),
  }
  try {
    await feed(input, stdin, maxMs)
  } catch (error) {
    const isOver = error instanceof CliError && (error.code === 'exec_finished' || isGone(error))
    if (isOver || input.isClosed) return
    note(`sandlot: not all of stdin was sent: ${error instanceof Error ? error.message : error}`)
  }
}

interface SignalOptions extends Pick<ExecStreamOptions, 'remote' | 'note'> {
  idOf(): string | undefined
  /** Whether signals cannot be forwarded because the service is unreachable. */
  isUnavailable(): boolean
}

function takeSignals({ idOf, isUnavailable, remote, note }: SignalOptions) {
  let interrupts = 0
  let terminations = 0
  const send = async (signal: 'INT' | 'TERM' | 'HUP') => {
    const id = idOf()
    if (id) await remote.signal(id, signal)
  }
  const pass = (signal: 'INT' | 'TERM' | 'HUP') => send(signal).catch(() => {})
  const leave = async (signal: 'TERM' | 'HUP', code: number) => {
    const late = setTimeout(() => shutDown(code), 3_000)
    await pass(signal)
    clearTimeout(late)
    await shutDown(code)
  }
  const onInterrupt = () => {
    interrupts++
    // The service ends the command after its grace period.
    if (isUnavailable()) return void shutDown(130)
    if (interrupts > 1) return void leave('TERM', 130)
    if (process.stderr.isTTY) note('sandlot: interrupting the command; press Ctrl-C again to exit.')
    void pass('INT')
  }
  // The exit status is reported as usual. A second SIGTERM, or one that cannot be forwarded, ends the client.
  const onTerminate = () => {
    terminations++
    if (terminations > 1) return void leave('TERM', 143)
    void send('TERM').catch(() => leave('TERM', 143))
  }
  const onHangUp = () => void leave('HUP', 129)
  const onOutputError = (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') void leave('TERM', closedPipe)
  }
  const before = process.listeners('SIGINT')
  let began = false
  return {
    begin() {
      if (began) return
      began = true
      for (const listener of before) process.off('SIGINT', listener)
      process.on('SIGINT', onInterrupt)
      process.on('SIGTERM', onTerminate)
      process.on('SIGHUP', onHangUp)
      process.stdout.on('error', onOutputError)
    },
    wasTerminated: () => terminations > 0,
    end() {
      if (!began) return
      process.off('SIGINT', onInterrupt)
      for (const listener of before) process.on('SIGINT', listener)
      process.off('SIGTERM', onTerminate)
      process.off('SIGHUP', onHangUp)
    },
  }
}
