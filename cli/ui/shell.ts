/** A shell in a session, on this terminal. */
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { describeError } from '../core/errors.ts'
import { printable } from '../core/printable.ts'
import { createRemote, type Remote } from '../exec/remote.ts'
import { activeInFront } from './sessions.ts'
import { attempt, tell } from './tell.ts'
import type { Ui } from './ui.ts'
import { standing } from './words.ts'

export function openShell(ui: Ui): void {
  attempt(ui, async () => {
    const session = activeInFront(ui)
    tell(ui, 'Opening a shell…')
    const remote = createRemote(ui.api, session.id)
    await attachHere(ui, remote, await startShell(ui, remote, session), true)
  })
}

/** @param isNew whether the command was started for this */
export async function attachHere(ui: Ui, remote: Remote, execId: string, isNew: boolean): Promise<void> {
  const { attachTerminal, wayBack } = await import('../exec/terminal.ts')
  let words = ''
  await ui.handOver(async () => {
    const ended = await attachTerminal(remote, execId, { note: sayBelow, isNew })
    words =
      ended === 'detached'
        ? `Detached, and it goes on. Enter on it among the commands, or ${wayBack(remote, execId)}.`
        : `${isNew ? 'The shell' : 'It'} has ended: ${standing(ended).words}.`
  })
  tell(ui, words)
  ui.refresh()
}

/** While the terminal is the shell's. */
const sayBelow = (text: string): void => void process.stderr.write(`${printable(text)}\n`)

/** bash where it exists, otherwise sh; sh too where the account's allowlist refuses bash. */
async function startShell(ui: Ui, remote: Remote, { id, name }: Sandbox): Promise<string> {
  const { launchTerminal } = await import('../exec/launch-terminal.ts')
  const start = (shell: string) => launchTerminal(remote, { command: [shell] }, async () => name)
  if (!(await hasBash(ui, id))) return await start('sh')
  try {
    return await start('bash')
  } catch (error) {
    if (describeError(error).code !== 'command_not_allowed') throw error
    return await start('sh')
  }
}

/** Looked up as a file, because a command that looks would stand in the list of commands. */
async function hasBash({ api }: Ui, id: string): Promise<boolean> {
  try {
    await api.call('listFiles', { params: { id }, query: { path: '/bin/bash' } })
    return true
  } catch (error) {
    if (['file_not_found', 'permission_denied'].includes(describeError(error).code)) return false
    throw error
  }
}
