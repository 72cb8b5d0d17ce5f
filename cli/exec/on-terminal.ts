/** Terminal handling for `exec -t` and `attach`. */
import type { Command } from 'commander'
import { CliError, exitCodes } from '../core/errors.ts'
import type { Output } from '../core/output.ts'
import { defaultDetachKeys, readDetachKeys } from './detach-keys.ts'
import { finish } from './exit-status.ts'
import type { Remote } from './remote.ts'

export const addDetachKeys = (command: Command, when = ''): Command =>
  command.option(
    '--detach-keys <keys>',
    `${when}the keys that leave the command running, or none`,
    defaultDetachKeys,
  )

export function requireTerminal(what: string, hint?: string): void {
  if (process.stdin.isTTY) return
  throw new CliError('usage', `${what} requires a terminal, but stdin is not a terminal.`, { hint })
}

/**
 * Attaches the local terminal to a command. Returns the exit code once the command exits or the user
 * detaches.
 */
export async function stayAttached(
  remote: Remote,
  execId: string,
  { detachKeys, output, isNew }: { detachKeys: string; output: Output; isNew: boolean },
): Promise<number> {
  const { attachTerminal, attachHint } = await import('./terminal.ts')
  const { note } = output
  const keys = readDetachKeys(detachKeys)
  const ended = await attachTerminal(remote, execId, { note, isNew, detachKeys: keys })
  if (ended !== 'detached') {
    // Starts a new line after a prompt or other partial output.
    return finish(ended, { ...output, note: (text) => note(`\n${text}`) })
  }
  if (output.json) output.result(await remote.get(execId), '')
  note(`sandlot: detached; the command continues. ${attachHint(remote, execId)}.`)
  return exitCodes.done
}
