/** A shell in a session, on this terminal. */
import { describeError } from '../core/errors.ts'
import { createRemote, type Remote } from '../exec/remote.ts'
import { activeInFront } from './sessions.ts'
import { attempt, tell } from './tell.ts'
import type { Ui } from './ui.ts'
import { standing } from './words.ts'

/** bash where it exists, otherwise sh. */
const shell = ['/bin/sh', '-c', 'if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi']
/** For accounts whose allowlist refuses the other one. */
const plainShell = ['sh']

export function openShell(ui: Ui): void {
  attempt(ui, async () => {
    const { id } = activeInFront(ui)
    tell(ui, 'Opening a shell…')
    const { attachTerminal } = await import('../exec/terminal.ts')
    const { terminalSize } = await import('../exec/attachment.ts')
    const remote = createRemote(ui.api, id)
    const execId = await launch(remote, terminalSize())
    let words = ''
    await ui.handOver(async () => {
      words = standing(await attachTerminal(remote, execId, sayBelow)).words
    })
    tell(ui, `The shell has ended: ${words}.`)
    ui.refresh()
  })
}

/** While the terminal is the shell's. */
const sayBelow = (text: string): void => void process.stderr.write(`${text}\n`)

async function launch(remote: Remote, size: { rows: number; columns: number }): Promise<string> {
  const start = async (command: string[]) => (await remote.launch({ command, tty: true, ...size })).id
  try {
    return await start(shell)
  } catch (error) {
    if (describeError(error).code !== 'command_not_allowed') throw error
    return await start(plainShell)
  }
}
