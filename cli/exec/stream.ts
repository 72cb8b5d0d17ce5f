/** `sandlot exec` without a terminal: streams output and stdin, and forwards signals. */
import type { ExecOutcome, ExecRequest } from '../../shared/contract/exec.ts'
import { shellLine } from '../../shared/contract/shell-words.ts'
import { addStory, CliError } from '../core/errors.ts'
import type { OpenExchange } from '../core/http.ts'
import { leave as shutDown } from '../core/shutdown.ts'
import { showSeconds } from '../core/times.ts'
import { describeExit, isGone } from './exit-status.ts'
import { sendInput } from './feed.ts'
import { type Follower, follow } from './follow.ts'
import type { Input } from './input.ts'
import { noteMissing, reconnectNotes } from './print.ts'
import { graceMs, type Remote } from './remote.ts'
import { RetryPolicy, retryBudgetMs } from './retry.ts'

interface ExecStreamOptions {
  remote: Remote
  request: ExecRequest
  input: Input | undefined
  write?: Follower['write'] | undefined
  note(text: string): void
  /** By default, the retry budget is the command's grace period or 30 s, whichever is longer. */
  retry?: RetryPolicy
}

export async function runStreaming({
  remote,
  request,
  input,
  write,
  note,
  ...options
}: ExecStreamOptions): Promise<ExecOutcome> {
  const start = remote.streaming(request)
  const grace = request.grace_ms ?? graceMs
  const maxMs = Math.max(retryBudgetMs, grace)
  const { retry = new RetryPolicy({ maxMs }) } = options
  const signals = forwardSignals(remote, note)
  const notes = reconnectNotes(note)
  const follower: Follower = {
    onStart: signals.begin,
    write: write ?? (async () => {}),
    onGap(missing) {
      if (write) noteMissing(missing, note)
    },
    retry,
    onDisconnect(error) {
      signals.isUnavailable = true
      notes.onDisconnect(error)
    },
    onReconnect() {
      signals.isUnavailable = false
      notes.onReconnect()
    },
  }
  try {
    const first = await open()
    // The connection may break before the id arrives.
    const reopen = (lastEventId?: string) =>
      signals.execId === undefined ? start() : remote.follow(signals.execId, lastEventId)
    const ended = await follow(first, reopen, follower)
    if (signals.wasTerminated)
      note(`sandlot: the command has ended after SIGTERM was forwarded: ${describeExit(ended)}.`)
    return ended
  } catch (error) {
    const { execId } = signals
    if (execId === undefined) throw error
    if (isGone(error)) return await remote.get(execId)
    if (!(error instanceof CliError) || error.code !== 'network') throw error
    const [duration, limit] = [showSeconds(retry.disconnectedMs / 1000), showSeconds(grace / 1000)]
    throw addStory(
      error,
      `The client was disconnected for ${duration}, longer than the command's grace period of ${limit}, so the service will kill the command.`,
      `\`${shellLine('sandlot', 'logs', '-s', remote.sessionId, execId)}\` shows its output. \`sandlot exec --grace 5m\` sets a longer grace period.`,
    )
  } finally {
    input?.close()
    signals.end()
  }

  async function open(): Promise<OpenExchange> {
    if (!input) return await start()
    const { id } = await remote.launchFollowed(request)
    signals.begin(id)
    void sendInput(remote, id, input, note, maxMs)
    return await remote.follow(id)
  }
}

function forwardSignals(remote: Remote, note: (text: string) => void) {
  const ownListeners = process.listeners('SIGINT')
  let interrupts = 0
  const state = {
    execId: undefined as string | undefined,
    /** True while the service is unreachable and signals cannot be forwarded. */
    isUnavailable: false,
    wasTerminated: false,
    begin(id: string) {
      if (state.execId !== undefined) return
      state.execId = id
      for (const listener of ownListeners) process.off('SIGINT', listener)
      for (const [signal, handle] of Object.entries(handlers)) process.on(signal, handle)
      process.stdout.on('error', onOutputError)
    },
    end() {
      if (state.execId === undefined) return
      for (const [signal, handle] of Object.entries(handlers)) process.off(signal, handle)
      for (const listener of ownListeners) process.on('SIGINT', listener)
    },
  }
  const send = (signal: 'INT' | 'TERM' | 'HUP') => remote.signal(state.execId!, signal)
  const leave = async (signal: 'TERM' | 'HUP', code: number) => {
    const late = setTimeout(() => shutDown(code), 3_000)
    await send(signal).catch(() => {})
    clearTimeout(late)
    await shutDown(code)
  }
  const handlers = {
    SIGINT() {
      interrupts++
      // The service kills the command after its grace period.
      if (state.isUnavailable) return void shutDown(130)
      if (interrupts > 1) return void leave('TERM', 130)
      if (process.stderr.isTTY) note('sandlot: interrupting the command; press Ctrl-C again to exit.')
      void send('INT').catch(() => {})
    },
    // The exit status is reported as usual. A second SIGTERM, or one that cannot be forwarded, ends the client.
    SIGTERM() {
      if (state.wasTerminated) return void leave('TERM', 143)
      state.wasTerminated = true
      void send('TERM').catch(() => leave('TERM', 143))
    },
    SIGHUP: () => void leave('HUP', 129),
  }
  const onOutputError = (error: NodeJS.ErrnoException) => {
    // A shell reports the same code for SIGPIPE.
    if (error.code === 'EPIPE') void leave('TERM', 141)
  }
  return state
}
