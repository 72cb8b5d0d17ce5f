import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { shellLine } from '../../shared/contract/shell-words.ts'
import { CliError } from '../core/errors.ts'
import { showSeconds } from '../core/times.ts'
import { openWebSocket } from '../core/websocket.ts'
import { ShownOutput, useTerminal } from './attachment.ts'
import { defaultDetachKeys, readDetachKeys } from './detach-keys.ts'
import { isGone } from './exit-status.ts'
import { follow } from './follow.ts'
import { noteMissing, print, reconnectNotes } from './print.ts'
import type { Remote } from './remote.ts'
import { RetryPolicy } from './retry.ts'
import { ScreenModes } from './screen-modes.ts'

interface TerminalOptions {
  note(text: string): void
  /** Whether the client has just started the command. */
  isNew: boolean
  detachKeys?: Buffer
}

/**
 * Attaches the local terminal until the command exits or the user detaches. Reconnects after failures.
 * @throws {CliError} if the retry budget is used up
 */
export async function attachTerminal(
  remote: Remote,
  execId: string,
  { note, isNew, detachKeys = readDetachKeys(defaultDetachKeys) }: TerminalOptions,
): Promise<ExecOutcome | 'detached'> {
  const [shown, modes] = [new ShownOutput(), new ScreenModes()]
  const retry = new RetryPolicy()
  let isBroken = false
  for (;;) {
    try {
      if (isBroken) {
        const { status } = await remote.get(execId)
        if (status !== 'running') return await showRest(remote, execId, shown, note)
      }
      const socket = await openWebSocket(await remote.attach(execId))
      for (const sign of ['message', 'pong']) socket.on(sign, () => retry.alive())
      if (isBroken) note('sandlot: reconnected.')
      return await useTerminal(socket, { shown, modes, hasScreen: isBroken || !isNew }, detachKeys)
    } catch (error) {
      const isFirst = retry.isFresh
      const pause = pauseFor(error, retry)
      if (pause === undefined) throw withAttachHint(error, retry, remote, execId)
      if (pause > 0 && isFirst)
        note(
          `sandlot: ${(error as CliError).message} Reconnecting; press Ctrl-C to exit, and ${attachHint(remote, execId)}.`,
        )
      isBroken = true
      await sleep(pause)
    }
  }
}

/**
 * Returns a hint with the command for attaching again. It names the session, because several may be active.
 */
export const attachHint = ({ sessionId }: Remote, execId: string) =>
  `\`${shellLine('sandlot', 'attach', '-s', sessionId, execId)}\` attaches to it again`

function pauseFor(error: unknown, retry: RetryPolicy): number | undefined {
  const isOver = isGone(error) || (error instanceof CliError && error.code === 'exec_finished')
  if (!isOver) return retry.afterFailure(error)
  // The result may arrive shortly after the output. A command that still runs after that is about to be `lost`.
  const isFirst = retry.isFresh
  const pause = retry.afterFailure(error, true)
  return isFirst ? 0 : pause
}

async function showRest(
  remote: Remote,
  execId: string,
  shown: ShownOutput,
  note: (text: string) => void,
): Promise<ExecOutcome> {
  const open = (lastEventId = shown.eventId) => remote.follow(execId, lastEventId)
  const onGap = (missing: Parameters<typeof noteMissing>[0]) => noteMissing(missing, note)
  try {
    return await follow(await open(), open, { onStart() {}, write: print, onGap, ...reconnectNotes(note) })
  } catch (error) {
    if (!isGone(error)) throw error
    return await remote.get(execId)
  }
}

function withAttachHint(
  error: unknown,
  { disconnectedMs }: RetryPolicy,
  remote: Remote,
  execId: string,
): unknown {
  if (!(error instanceof CliError) || error.code !== 'network') return error
  return new CliError(
    'network',
    `The client was disconnected for ${showSeconds(disconnectedMs / 1000)}. ${error.message}`,
    { hint: `The command continues; ${attachHint(remote, execId)}.` },
  )
}
