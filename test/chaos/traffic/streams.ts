/** Streams the output of running commands as events and over a WebSocket. */
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { readEvents } from '../../support/events.ts'
import { between } from '../random.ts'
import { attempt, type CommandEntry } from '../recorder.ts'
import { recordRefusal, run, waitForExit } from './commands.ts'
import { anyApi, checkResult, type Lane, newCommand, recordsStart, short, timeoutMs } from './lane.ts'

const resumeTimes = 8

/** Streams a command's events. When the connection breaks, resumes after the last event. */
export async function streamed(lane: Lane): Promise<void> {
  const lines = between(lane.random, 1, 20)
  const entry = newCommand(lane, 'streamed', { exitCode: 7, stdout: '', stderr: '' })
  const { token } = entry
  const numbers = Array.from({ length: lines }, (_, index) => index)
  entry.expected.stdout = numbers.map((index) => `${token} ${index}\n`).join('')
  entry.expected.stderr = numbers.map((index) => `e${index}\n`).join('')
  const loop = `i=0; while [ $i -lt ${lines} ]; do echo ${token} $i; echo e$i >&2; i=$((i+1)); sleep 0.02; done`
  await follow(lane, entry, `${recordsStart(entry)}; ${loop}; exit 7`)
}

export async function chatty(lane: Lane): Promise<void> {
  const count = between(lane.random, 1_000, 20_000)
  const expected = { exitCode: 0, stdout: 'line of stdout\n'.repeat(count), stderr: 'stderr\n'.repeat(count) }
  const entry = newCommand(lane, 'chatty', expected)
  const both = `yes line of stdout | head -n ${count} & yes stderr | head -n ${count} >&2; wait`
  await follow(lane, entry, `${recordsStart(entry)}; ${both}`)
}

/** The position in both streams across reconnections. */
class Received {
  readonly at = { stdout: 0, stderr: 0 }
  lastId: string | undefined
  hasEnded = false
}

async function follow(lane: Lane, entry: CommandEntry, command: string): Promise<void> {
  const received = new Received()
  let execId: string | undefined
  entry.attempts++
  const { account, params, recorder } = lane
  const opened = await attempt(recorder, `exec: ${entry.kind}`, async (signal) => {
    const headers = { accept: 'text/event-stream' }
    const body = { command, timeout_ms: timeoutMs, grace_ms: 10_000 }
    const response = await account.open('execCommand', { params, headers, body, api: anyApi(lane), signal })
    await listen(lane, entry, received, response, (id) => {
      execId = id
    })
  })
  recordRefusal(entry, opened)
  for (let tried = 0; execId && !received.hasEnded && tried < resumeTimes; tried++) {
    const one = { ...params, exec_id: execId }
    const outcome = await attempt(recorder, 'streamExec', async (signal) => {
      const headers: Record<string, string> = received.lastId ? { 'last-event-id': received.lastId } : {}
      const response = await account.open('streamExec', { params: one, headers, api: anyApi(lane), signal })
      await listen(lane, entry, received, response)
    })
    if ('failed' in outcome && outcome.refusal && outcome.refusal.status < 500) return
    if (!received.hasEnded) await sleep(200)
  }
}

async function listen(
  lane: Lane,
  entry: CommandEntry,
  received: Received,
  response: Response,
  onStart: (id: string) => void = () => {},
): Promise<void> {
  for await (const { id, event, data } of readEvents(response)) {
    const [stdout, stderr] = id.split('-').map(Number) as [number, number]
    const piece = event === 'stdout' || event === 'stderr' ? pieceOf(data) : undefined
    const grown = { stdout: stdout - received.at.stdout, stderr: stderr - received.at.stderr }
    const reported =
      event === 'gap'
        ? { stdout: data.stdout_bytes, stderr: data.stderr_bytes }
        : { stdout: 0, stderr: 0, ...(piece && { [event]: piece.length }) }
    const ids = [lane.sandbox.id, data.id]
    const evidence = {
      entry: short(entry),
      received: { ...received },
      id,
      event,
      data: JSON.stringify(data).slice(0, 300),
    }
    if (event !== 'exit' && (grown.stdout !== reported.stdout || grown.stderr !== reported.stderr)) {
      lane.recorder.wrong('bytes are missing between two events without a gap', evidence, ids)
    }
    if (piece && !isAsPrinted(entry, event as 'stdout', received.at[event as 'stdout'], piece)) {
      lane.recorder.wrong('an event contains bytes that were not printed at its offset', evidence, ids)
    }
    if (event === 'start') onStart(data.id)
    if (event === 'exit') {
      received.hasEnded = true
      checkResult(lane, entry, data)
      if (
        data.status === 'exited' &&
        (data.stdout_bytes !== received.at.stdout || data.stderr_bytes !== received.at.stderr)
      ) {
        lane.recorder.wrong('a stream ended before all output was sent, without a gap', evidence, ids)
      }
    }
    Object.assign(received, { at: { stdout, stderr }, lastId: id })
  }
}

const pieceOf = (data: { text?: string; base64?: string }): Buffer =>
  data.text === undefined ? Buffer.from(data.base64 ?? '', 'base64') : Buffer.from(data.text)

function isAsPrinted(entry: CommandEntry, stream: 'stdout' | 'stderr', at: number, piece: Buffer): boolean {
  return Buffer.from(entry.expected[stream])
    .subarray(at, at + piece.length)
    .equals(piece)
}

/** Attaches a WebSocket to a command that echoes input, with or without a terminal. */
export async function attached(lane: Lane): Promise<void> {
  const tty = lane.random() < 0.5
  const entry = newCommand(lane, tty ? 'terminal' : 'attached', { exitCode: 4, stdout: '', stderr: '' })
  const { token } = entry
  // Terminals echo input and use CR LF.
  entry.expected.stdout = tty ? `${token}\r\ngot ${token}\r\n` : `got ${token}\n`
  const command = `${recordsStart(entry)}; read -r word; echo got $word; exit 4`
  const started = await run(lane, entry, { command, ...(tty ? { tty: true } : { background: true }) })
  if (!started) return
  await attempt(lane.recorder, `attach: ${entry.kind}`, (signal) => converse(lane, entry, started.id, signal))
  if (entry.reported.length === 0) await waitForExit(lane, entry, started.id)
}

function converse(lane: Lane, entry: CommandEntry, execId: string, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const url = `${lane.url(anyApi(lane)).replace('http', 'ws')}/v1/sandboxes/${lane.sandbox.id}/exec/${execId}/attach`
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${lane.account.key}` } })
  const leave = () => socket.terminate()
  signal.addEventListener('abort', leave)
  socket.on('open', () => socket.send(Buffer.from(`${entry.token}\n`)))
  socket.on('message', (data: Buffer, isBinary) => {
    const message = isBinary ? undefined : JSON.parse(String(data))
    if (message?.type === 'exit') checkResult(lane, entry, message)
  })
  // Other traffic checks commands, so this error is ignored.
  socket.on('unexpected-response', () => socket.terminate())
  socket.on('error', () => {})
  socket.on('close', () => {
    signal.removeEventListener('abort', leave)
    if (entry.reported.length > 0) resolve()
    else reject(new Error('broke off'))
  })
  return promise
}
