import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { destroyReasonOf } from '../core/destroy-reasons.ts'
import { describeError } from '../core/errors.ts'
import { printable } from '../core/printable.ts'
import { createRemote, type Remote } from '../exec/remote.ts'
import { describeStatus } from './describe.ts'
import { errorText, openDialog, showNotice } from './dialogs.ts'
import { activeInFront } from './sessions.ts'
import { nameOf, type Opening } from './state.ts'
import { oneLine } from './text.ts'
import { beginOpening, finishOpening, isOpening, untilSessionsLoaded } from './type-ahead.ts'
import type { Ui } from './ui.ts'

export async function openShell(ui: Ui): Promise<void> {
  const opening = beginOpening(ui, 'shell')
  try {
    await untilSessionsLoaded(ui, opening)
    if (!isOpening(ui, opening)) return
    const session = activeInFront(ui)
    showNotice(ui, `Opening a shell in ${oneLine(nameOf(session))}…`)
    const remote = createRemote(ui.api, session.id)
    const execId = await startShell(ui, remote, session)
    if (isOpening(ui, opening)) await attachHere(ui, remote, execId, opening)
    else await remote.signal(execId, 'KILL')
  } catch (error) {
    // Waits for Enter, because further keys are meant for the shell.
    if (isOpening(ui, opening)) openDialog(ui, { kind: 'message', text: errorText(error) })
  } finally {
    finishOpening(ui, opening)
  }
}

/** Connects the terminal to a program. A new shell first receives the keys typed while it was opening. */
export async function attachHere(ui: Ui, remote: Remote, execId: string, opening?: Opening): Promise<void> {
  const { attachTerminal, attachHint } = await import('../exec/terminal.ts')
  const isNew = opening !== undefined
  const session = ui.store.get().sessions?.get(remote.sessionId)
  const name = oneLine(session ? nameOf(session) : remote.sessionId)
  const attach = async () => {
    writeNote(`sandlot: ${isNew ? 'a shell' : 'a terminal'} in ${name}; Ctrl-P Ctrl-Q detaches.`)
    // Enables raw mode first, so that keys are not echoed while connecting.
    if (process.stdin.isTTY) process.stdin.setRawMode(true)
    if (opening?.typed) process.stdin.unshift(Buffer.from(opening.typed))
    const ended = await attachTerminal(remote, execId, { note: writeNote, isNew })
    if (ended === 'detached')
      return showNotice(
        ui,
        `Detached from ${name}. The command is still running. To reattach, select it in the list of commands and press Enter. In your own shell, ${attachHint(remote, execId)}.`,
      )
    const ofSession = destroyReasonOf(ended)
    const how =
      ofSession === undefined ? `: ${describeStatus(ended).text}` : ` with its session: ${ofSession}`
    const notice = `${isNew ? 'The shell' : 'The terminal'} in ${name} has ended${how}.`
    // After an unexpected end, waits for Enter, because further keys were meant for the shell.
    if (ended.status === 'exited') showNotice(ui, notice)
    else openDialog(ui, { kind: 'message', text: notice })
  }
  await ui.handOver(() =>
    attach().catch((error) => openDialog(ui, { kind: 'message', text: errorText(error) })),
  )
  ui.refresh()
}

const writeNote = (text: string): void => void process.stderr.write(`${printable(text)}\n`)

/** Starts bash if it exists and the allowlist permits it, otherwise sh. */
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

/** Checks for /bin/bash with a file request, because a command would appear in the list of commands. */
async function hasBash({ api }: Ui, id: string): Promise<boolean> {
  try {
    await api.call('listFiles', { params: { id }, query: { path: '/bin/bash' } })
    return true
  } catch (error) {
    if (['file_not_found', 'permission_denied'].includes(describeError(error).code)) return false
    throw error
  }
}
