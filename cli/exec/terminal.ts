/** `sandlot exec -it` and `attach`: connects this terminal to a command's until that ends, over broken connections too. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecEnd } from '../../shared/contract/exec.ts'
import { CliError } from '../core/errors.ts'
import { connect, useTerminal } from './attachment.ts'
import { defaultDetachKeys, readDetachKeys } from './detach-keys.ts'
import { isGone } from './ending.ts'
import { follow } from './follow.ts'
import { print, sayMissing } from './print.ts'
import type { Remote } from './remote.ts'
import { pauseAfter, pausesMs } from './retry.ts'
import { ScreenModes } from './screen-modes.ts'
import { ShownOutput } from './shown.ts'

/** How long a terminal that was attached tries to be so again, at least. A service may take that long to see a lost worker. */
const awayMs = 30_000

interface TerminalOptions {
  note(text: string): void
  /** Whether the command was started for this. */
  isNew: boolean
  /** By default those of Docker. */
  detachKeys?: Buffer
}

/**
 * Reconnects when the connection breaks, and shows nothing twice. If the command has ended
 * meanwhile, it shows the rest. Between two connections the terminal is the user's own.
 * @returns how it ended, or that the user has detached from it
 * @throws {CliError} when it cannot be attached to, again and again
 */
export async function attachTerminal(
  remote: Remote,
  execId: string,
  { note, isNew, detachKeys = readDetachKeys(defaultDetachKeys) }: TerminalOptions,
): Promise<ExecEnd | 'detached'> {
  const [shown, modes] = [new ShownOutput(), new ScreenModes()]
  let isBroken = false
  let awaySince = Number.POSITIVE_INFINITY
  for (let tries = 0; ; tries++) {
    try {
      if (isBroken) {
        const { status } = await remote.get(execId)
        if (status !== 'running') return await showRest(remote, execId, shown, note)
      }
      const socket = await connect(remote, execId)
      socket.on('message', () => {
        tries = 0
        awaySince = Number.POSITIVE_INFINITY
      })
      if (isBroken) note('sandlot: attached again.')
      return await useTerminal(socket, { shown, modes, hasScreen: isBroken || !isNew }, detachKeys)
    } catch (error) {
      if (isBroken) awaySince = Math.min(awaySince, performance.now())
      const pause = pauseFor(error, tries, performance.now() - awaySince < awayMs)
      if (pause === undefined) throw withWayBack(error, remote, execId)
      if (pause > 0 && tries === 0)
        note(
          `sandlot: ${(error as CliError).message} Attaching again; Ctrl-C leaves, and ${wayBack(remote, execId)}.`,
        )
      isBroken = true
      await sleep(pause)
    }
  }
}

/** With the session, because several may be active. */
export const wayBack = ({ sessionId }: Remote, execId: string) =>
  `\`sandlot attach -s ${sessionId} ${execId}\` goes back to it`

function pauseFor(error: unknown, tries: number, mayGoOn: boolean): number | undefined {
  const isOver = isGone(error) || (error instanceof CliError && error.code === 'exec_finished')
  // The result may follow the output by a moment; a command that still runs after that is about to be `lost`.
  if (isOver) return tries === 0 ? 0 : pausesMs[tries]
  return pauseAfter(error, tries, mayGoOn)
}

async function showRest(
  remote: Remote,
  execId: string,
  shown: ShownOutput,
  note: (text: string) => void,
): Promise<ExecEnd> {
  const open = (lastEventId = shown.eventId) => remote.follow(execId, lastEventId)
  const onGap = (missing: Parameters<typeof sayMissing>[0]) => sayMissing(missing, note)
  try {
    return await follow(await open(), open, { onStart() {}, write: print, onGap })
  } catch (error) {
    if (!isGone(error)) throw error
    return await remote.get(execId)
  }
}

function withWayBack(error: unknown, remote: Remote, execId: string): unknown {
  if (!(error instanceof CliError) || error.code !== 'network') return error
  return new CliError('network', error.message, {
    hint: `The command goes on; ${wayBack(remote, execId)}.`,
  })
}
