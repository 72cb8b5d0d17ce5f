/** The usual `sandlot exec`: streams output and stdin, and passes Ctrl-C to the command. */
import type { ExecEnd, ExecRequest } from '../../shared/contract/exec.ts'
import { shellLine } from '../../shared/contract/shell-words.ts'
import { addStory, CliError } from '../core/errors.ts'
import type { OpenExchange } from '../core/http.ts'
import { leave as leaveClient } from '../core/leaving.ts'
import { showSeconds } from '../core/times.ts'
import { describeEnd, isGone } from './ending.ts'
import { feed } from './feed.ts'
import { type Follower, follow } from './follow.ts'
import type { Input } from './input.ts'
import { sayAway, sayMissing } from './print.ts'
import { graceMs, type Remote } from './remote.ts'
import { Patience, patienceMs } from './retry.ts'

export interface ExecStreamOptions {
  remote: Remote
  request: ExecRequest
  /** What is to be sent as it comes. */
  input: Input | undefined
  /** Where output goes; without, it stays at the service. */
  write?: Follower['write'] | undefined
  note(text: string): void
  /** By default it lasts as long as the command's grace at least. */
  patience?: Patience
}

/** When the reader of our output is gone, we end as in a pipe. */
const closedPipe = 128 + 13

/** @throws {CliError} */
export async function runStreaming({
  remote,
  request,
  input,
  write,
  note,
  ...options
}: ExecStreamOptions): Promise<ExecEnd> {
  let execId: string | undefined
  const start = remote.streaming(request)
  const grace = request.grace_ms ?? graceMs
  const mostMs = Math.max(patienceMs, grace)
  const { patience = new Patience({ mostMs }) } = options
  const away = sayAway(note)
  let isAway = false
  const taking = takeSignals({ idOf: () => execId, isAway: () => isAway, remote, note })
  const follower: Follower = {
    onStart(id) {
      execId = id
      taking.begin()
    },
    write: write ?? (async () => {}),
    onGap(missing) {
      if (write) sayMissing(missing, note)
    },
    patience,
    onAway(error) {
      isAway = true
      away.onAway(error)
    },
    onBack() {
      isAway = false
      away.onBack()
    },
  }
  try {
    const first = await open()
    // A connection may break before it has told the id.
    const reopen = (lastEventId?: string) =>
      execId === undefined ? start() : remote.follow(execId, lastEventId)
    const ended = await follow(first, reopen, follower)
    if (taking.wasTerminated())
      note(`sandlot: SIGTERM was passed on, and the command has ended: ${describeEnd(ended)}.`)
    return ended
  } catch (error) {
    if (execId === undefined) throw error
    if (!isGone(error)) throw tellAway(error, remote, execId, { awayMs: patience.awayMs, grace })
    return await remote.get(execId)
  } finally {
    input?.close()
    taking.end()
  }

  async function open(): Promise<OpenExchange> {
    if (!input) return await start()
    const { id } = await remote.launchFollowed(request)
    follower.onStart(id)
    void sendInput(remote, id, input, note, mostMs)
    return await remote.follow(id)
  }
}

/** After a connection that stayed away, what was exceeded and what becomes of the command. */
function tellAway(
  error: unknown,
  { sessionId }: Remote,
  execId: string,
  { awayMs, grace }: { awayMs: number; grace: number },
): unknown {
  if (!(error instanceof CliError) || error.code !== 'network') return error
  const [away, limit] = [showSeconds(awayMs / 1000), showSeconds(grace / 1000)]
  return addStory(
    error,
    `The connection was away for ${away}, longer than the command's grace of ${limit}, and the service ends the command.`,
    `\`${shellLine('sandlot', 'logs', '-s', sessionId, execId)}\` shows what it printed; \`sandlot exec --grace 5m\` lets a command wait for longer.`,
  )
}

/**
 * Input for a command that takes no more may be dropped.
 * @param mostMs the patience with a service that is away
 */
export async function sendInput(
  remote: Remote,
  id: string,
  input: Input,
  note: (text: string) => void,
  mostMs = patienceMs,
) {
  const stdin = {
    send: (offset: number, bytes: AsyncIterable<Uint8Array>) => remote.feed(id, offset, bytes),
    end: (offset: number) => remote.endStdin(id, offset),
  }
  try {
    await feed(input, stdin, mostMs)
  } catch (error) {
    const isOver = error instanceof CliError && (error.code === 'exec_finished' || isGone(error))
    if (isOver || input.isClosed) return
    note(`sandlot: not all of stdin was sent: ${error instanceof Error ? error.message : error}`)
  }
}

interface SignalOptions extends Pick<ExecStreamOptions, 'remote' | 'note'> {
  /** The command's. */
  idOf(): string | undefined
  /** Whether nothing can be passed to the command. */
  isAway(): boolean
}

/** From the command's start on, signals go to it. */
function takeSignals({ idOf, isAway, remote, note }: SignalOptions) {
  let interrupts = 0
  let terminations = 0
  const send = async (signal: 'INT' | 'TERM' | 'HUP') => {
    const id = idOf()
    if (id) await remote.signal(id, signal)
  }
  const pass = (signal: 'INT' | 'TERM' | 'HUP') => send(signal).catch(() => {})
  const leave = async (signal: 'TERM' | 'HUP', code: number) => {
    const late = setTimeout(() => leaveClient(code), 3_000)
    await pass(signal)
    clearTimeout(late)
    await leaveClient(code)
  }
  const onInterrupt = () => {
    interrupts++
    // The service ends the command once its grace is over.
    if (isAway()) return void leaveClient(130)
    if (interrupts > 1) return void leave('TERM', 130)
    if (process.stderr.isTTY) note('sandlot: interrupting the command; Ctrl-C again leaves it.')
    void pass('INT')
  }
  // Its end is waited for and told as any other. A second one leaves, and so does one that cannot be passed on.
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
