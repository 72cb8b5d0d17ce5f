/** Commands: starting one, and following what one prints. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecEnd, ExecSummary } from '../../shared/contract/exec.ts'
import { CliError, describeError, exitCodes } from '../core/errors.ts'
import type { OpenExchange } from '../core/http.ts'
import { follow } from '../exec/follow.ts'
import { createRemote } from '../exec/remote.ts'
import { closeDialog } from './dialogs.ts'
import { OutputText } from './output-text.ts'
import { changeOpen, changePage, findPage, goBack, isOn, openPage, replacePage } from './pages.ts'
import { attachHere } from './shell.ts'
import { nameInFront, type OutputPage, pageOf, type SessionPage, type State } from './state.ts'
import { attempt, tell, tellError } from './tell.ts'
import { oneLine } from './text.ts'
import type { Ui } from './ui.ts'
import { standingLine } from './words.ts'

/** How often new output is shown. */
const showMs = 40
/** Pause between tries to reconnect after a long break. */
const retryMs = 1_000

export async function runCommand(ui: Ui, id: string, command: string): Promise<void> {
  const page = showOutput(ui, id, undefined, command)
  const remote = createRemote(ui.api, id)
  try {
    const { stdout: _out, stderr: _err, ...started } = await remote.launch({ command })
    const summary = { ...started, command, background: true, tty: false }
    changeList(ui, id, (commands) => [summary, ...commands.filter((other) => other.id !== started.id)])
    if (interruptedEarly.has(page.output)) await remote.signal(started.id, 'INT')
    if (!isOpen(ui, page.output)) return
    changeOpen(ui, 'output', () => ({ execId: started.id, status: standingLine(started) }))
    // It gets no stdin.
    await remote.endStdin(started.id, 0).catch(() => {})
    await followOutput(ui, page.output)
  } catch (error) {
    changeOpen(ui, 'output', ({ output }) =>
      output === page.output ? { status: 'not run', isRunning: false } : {},
    )
    throw error
  }
}

export function openCommand(ui: Ui): void {
  const page = findPage(ui.store.get(), 'session')
  const command = page && selectedCommand(page)
  if (!command) return
  if (isOpenTerminal(command)) attempt(ui, () => attachHere(ui, createRemote(ui.api, page.id), command.id))
  else showCommand(ui, page.id, command)
}

/** One can attach to it. */
export const isOpenTerminal = ({ tty, status }: ExecSummary): boolean => tty && status === 'running'

function showCommand(ui: Ui, id: string, command: ExecSummary): void {
  const { output } = showOutput(ui, id, command.id, command.command)
  changeOpen(ui, 'output', () => ({ status: standingLine(command), isRunning: command.status === 'running' }))
  attempt(ui, () => followOutput(ui, output))
}

export const selectedCommand = ({ commands = [], selectedCommand }: SessionPage) =>
  commands.find(({ id }) => id === selectedCommand) ?? commands[0]

export function interrupt(ui: Ui): void {
  const page = findPage(ui.store.get(), 'output')
  if (!page?.isRunning) return
  const { id, execId } = page
  changePage(ui, page, { isInterrupted: true })
  tell(ui, 'Interrupting it. Ctrl-C now leaves this page.')
  if (execId === undefined) return void interruptedEarly.add(page.output)
  attempt(ui, async () => {
    await createRemote(ui.api, id).signal(execId, 'INT')
  })
}

/** The outputs of commands that are interrupted once they are started. */
const interruptedEarly = new WeakSet<OutputText>()

/** Ctrl-C: first for the command that is shown, then it leaves its page. Elsewhere it quits. */
export function interruptOrQuit(ui: Ui) {
  const state = ui.store.get()
  const page = pageOf(state)
  if (page.at !== 'output') return ui.quit(exitCodes.interrupted)
  if (state.dialog) return closeDialog(ui)
  if (page.isRunning && !page.isInterrupted) return interrupt(ui)
  goBack(ui)
  if (page.isRunning) tell(ui, `The command in ${oneLine(nameInFront(state))} goes on.`)
}

/** Changes the list of commands without asking the service again; does nothing while it is loading. */
const changeList = (ui: Ui, id: string, change: (commands: ExecSummary[]) => ExecSummary[]): void =>
  changeOpen(ui, 'session', (page) =>
    page.id === id && page.commands ? { commands: change(page.commands) } : {},
  )

/** Shows the end, on its page and in the list. */
function showEnd(ui: Ui, id: string, ended: ExecEnd): void {
  if (findPage(ui.store.get(), 'output')?.isInterrupted) tell(ui, 'Interrupted it.')
  changeOpen(ui, 'output', () => ({ status: standingLine(ended), isRunning: false }))
  changeList(ui, id, (all) => all.map((each) => (each.id === ended.id ? { ...each, ...ended } : each)))
}

function showOutput(ui: Ui, id: string, execId: string | undefined, command: string): OutputPage {
  const page: OutputPage = {
    at: 'output',
    id,
    execId,
    command,
    output: newOutput(ui, id, () => execId ?? pageWith(ui.store.get(), page.output)?.execId),
    status: '▸ starting',
    isRunning: true,
    isInterrupted: false,
    top: 'end',
  }
  // Follows one command at a time.
  if (isOn(ui.store.get(), 'output')) replacePage(ui, page)
  else openPage(ui, page)
  return page
}

/** Reads on by ranges; its command is known once it is started. */
const newOutput = (ui: Ui, id: string, execId: () => string | undefined) =>
  new OutputText((...range) => createRemote(ui.api, id).readOutput(execId()!, ...range))

/** The page is recognised by its output object: another page may show the same command. */
const isOpen = (ui: Ui, output: OutputText): boolean => pageWith(ui.store.get(), output) !== undefined
const pageWith = (state: State, output: OutputText): OutputPage | undefined => {
  const page = findPage(state, 'output')
  return page?.output === output ? page : undefined
}

/** Follows until the command ends or the page is left, and reconnects for as long as that takes. */
async function followOutput(ui: Ui, first: OutputText): Promise<void> {
  for (let output = first; isOpen(ui, output); ) {
    try {
      return await followOnce(ui, output)
    } catch (thrown) {
      const error = describeError(thrown)
      if (!isOpen(ui, output)) return
      if (error.code !== 'network' && error.code !== 'unavailable') return await showResult(ui, output, error)
      changeOpen(ui, 'output', () => ({ status: '… the connection broke; trying again' }))
      await sleep(retryMs)
      if (!isOpen(ui, output)) return
      // The service sends everything again.
      const { id, execId } = pageWith(ui.store.get(), output)!
      output = newOutput(ui, id, () => execId)
      const fresh = output
      changeOpen(ui, 'output', () => ({ output: fresh }))
    }
  }
}

async function followOnce(ui: Ui, output: OutputText): Promise<void> {
  const { id, execId } = pageWith(ui.store.get(), output)!
  const remote = createRemote(ui.api, id)
  const shown = showSoon(ui, output)
  let opened: OpenExchange | undefined
  const left = ui.store.subscribe(() => {
    if (!isOpen(ui, output)) opened?.response.destroy()
  })
  const open = async (lastEventId?: string) => {
    if (!isOpen(ui, output)) throw new CliError('failed', 'The page was left.')
    opened = await remote.follow(execId!, lastEventId)
    return opened
  }
  try {
    const ended = await follow(await open(), open, {
      onStart: () => changeOpen(ui, 'output', () => ({ status: '▸ running' })),
      async write(stream, bytes) {
        output.append(stream, bytes)
        shown.soon()
      },
      onGap(missing) {
        output.skip(missing)
        shown.soon()
      },
    })
    showEnd(ui, id, ended)
  } finally {
    left()
    shown.now()
  }
}

/** The session has ended, and with it the output: shows how the command ended. */
async function showResult(ui: Ui, output: OutputText, why: CliError): Promise<void> {
  const { id, execId } = pageWith(ui.store.get(), output)!
  const ended = await createRemote(ui.api, id)
    .get(execId!)
    .catch(() => {
      if (isOpen(ui, output)) changeOpen(ui, 'output', () => ({ status: 'not known', isRunning: false }))
      return Promise.reject(why)
    })
  if (!isOpen(ui, output)) return
  if (ended.stdout !== '' || ended.stderr !== '') output.note(ended.stdout + ended.stderr)
  changeOpen(ui, 'output', () => ({ status: standingLine(ended), isRunning: false }))
  if (ended.stdout_bytes + ended.stderr_bytes > 0 && output.total === 0)
    tellError(ui, new CliError('failed', 'What it printed is gone with its session.'))
}

/** Shows new output at intervals, because a command may print more often than a screen can change. */
function showSoon(ui: Ui, output: OutputText) {
  let timer: NodeJS.Timeout | undefined
  const now = () => {
    clearTimeout(timer)
    timer = undefined
    if (isOpen(ui, output)) ui.store.set({})
  }
  return {
    now,
    soon() {
      timer ??= setTimeout(now, showMs)
    },
  }
}
