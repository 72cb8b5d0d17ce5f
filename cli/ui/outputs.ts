import type { ExecOutcome, ExecSummary } from '../../shared/contract/exec.ts'
import { CliError, describeError, exitCodes } from '../core/errors.ts'
import type { OpenExchange } from '../core/http.ts'
import { follow } from '../exec/follow.ts'
import { createRemote } from '../exec/remote.ts'
import { RetryPolicy } from '../exec/retry.ts'
import { statusLine } from './describe.ts'
import { closeDialog } from './dialogs.ts'
import { attempt, showError, showNotice } from './notices.ts'
import { OutputTail } from './output-tail.ts'
import { gapLine } from './pager.ts'
import {
  changeOpen,
  changePage,
  findPage,
  goBack,
  isOn,
  newPageId,
  openPage,
  pageWith,
  replacePage,
} from './pages.ts'
import { attachHere } from './shell.ts'
import { nameInFront, type OutputPage, pageOf, type SessionPage } from './state.ts'
import { oneLine } from './text.ts'
import type { Ui } from './ui.ts'

/** Minimum milliseconds between redraws of the output. */
const showMs = 40

export async function runCommand(ui: Ui, id: string, command: string): Promise<void> {
  const pageId = showOutput(ui, id, undefined, command)
  const remote = createRemote(ui.api, id)
  try {
    const { stdout: _out, stderr: _err, ...started } = await remote.launch({ command })
    const summary = { ...started, command, background: true, tty: false }
    changeList(ui, id, (commands) => [summary, ...commands.filter((other) => other.id !== started.id)])
    if (interruptedEarly.delete(pageId)) await remote.signal(started.id, 'INT')
    if (!findOutput(ui, pageId)) return
    changeOutput(ui, pageId, { execId: started.id, status: statusLine(started) })
    // The command receives no stdin.
    await remote.endStdin(started.id, 0).catch(() => {})
    await followOutput(ui, pageId)
  } catch (error) {
    // With an id, the command is running, and only following it has failed.
    if (findOutput(ui, pageId)?.execId === undefined)
      changeOutput(ui, pageId, { status: 'not run', isRunning: false })
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

export const isOpenTerminal = ({ tty, status }: ExecSummary): boolean => tty && status === 'running'

function showCommand(ui: Ui, id: string, command: ExecSummary): void {
  const pageId = showOutput(ui, id, command.id, command.command)
  changeOutput(ui, pageId, { status: statusLine(command), isRunning: command.status === 'running' })
  attempt(ui, () => followOutput(ui, pageId))
}

export const selectedCommand = ({ commands = [], selectedCommand }: SessionPage) =>
  commands.find(({ id }) => id === selectedCommand) ?? commands[0]

export function interrupt(ui: Ui): void {
  const page = findPage(ui.store.get(), 'output')
  if (!page?.isRunning) return
  const { id, execId } = page
  changePage(ui, page, { isInterrupted: true })
  showNotice(ui, 'Interrupting the command. Press Ctrl-C again to leave this page.')
  if (execId === undefined) return void interruptedEarly.add(page.pageId)
  attempt(ui, async () => {
    await createRemote(ui.api, id).signal(execId, 'INT')
  })
}

/** Pages whose command is interrupted as soon as it starts. */
const interruptedEarly = new Set<number>()

/** Ctrl-C first interrupts a running command, then leaves the page. On other pages, it quits the picker. */
export function interruptOrQuit(ui: Ui) {
  const state = ui.store.get()
  const page = pageOf(state)
  if (page.at !== 'output') return ui.quit(exitCodes.interrupted)
  if (state.dialog) return closeDialog(ui)
  if (page.isRunning && !page.isInterrupted) return interrupt(ui)
  goBack(ui)
  if (page.isRunning) showNotice(ui, `The command in ${oneLine(nameInFront(state))} keeps running.`)
}

/** Changes the list of commands without a request. Does nothing until the list has been loaded. */
const changeList = (ui: Ui, id: string, change: (commands: ExecSummary[]) => ExecSummary[]): void =>
  changeOpen(ui, 'session', (page) =>
    page.id === id && page.commands ? { commands: change(page.commands) } : {},
  )

function showExitStatus(ui: Ui, { pageId, id }: OutputPage, ended: ExecOutcome): void {
  if (findOutput(ui, pageId)?.isInterrupted) showNotice(ui, 'Interrupted the command.')
  changeOutput(ui, pageId, { status: statusLine(ended), isRunning: false })
  changeList(ui, id, (all) => all.map((each) => (each.id === ended.id ? { ...each, ...ended } : each)))
}

function showOutput(ui: Ui, id: string, execId: string | undefined, command: string): number {
  const pageId = newPageId()
  const page: OutputPage = {
    at: 'output',
    pageId,
    id,
    execId,
    command,
    output: new OutputTail(),
    status: '▸ starting',
    isRunning: true,
    isInterrupted: false,
    top: 'end',
  }
  if (isOn(ui.store.get(), 'output')) replacePage(ui, page)
  else openPage(ui, page)
  return pageId
}

function findOutput(ui: Ui, pageId: number): OutputPage | undefined {
  const page = pageWith(ui.store.get(), pageId)
  return page?.at === 'output' ? page : undefined
}

/** Changes an output page. Does nothing if the page has been closed. */
function changeOutput(ui: Ui, pageId: number, change: Partial<OutputPage>): void {
  const page = findOutput(ui, pageId)
  if (page) changePage(ui, page, change)
}

/** Follows the output until the command ends or the page is closed. */
async function followOutput(ui: Ui, pageId: number): Promise<void> {
  const page = findOutput(ui, pageId)
  if (!page) return
  const { id, execId, output } = page
  const remote = createRemote(ui.api, id)
  const shown = showSoon(ui, pageId)
  let opened: OpenExchange | undefined
  const left = ui.store.subscribe(() => {
    if (!findOutput(ui, pageId)) opened?.response.destroy()
  })
  const open = async (lastEventId?: string) => {
    if (!findOutput(ui, pageId)) throw new CliError('failed', 'The page was closed.')
    opened = await remote.follow(execId!, lastEventId)
    return opened
  }
  try {
    const ended = await follow(undefined, open, {
      retry: new RetryPolicy({ maxMs: Number.POSITIVE_INFINITY }),
      onDisconnect: () => changeOutput(ui, pageId, { status: '… connection lost; retrying' }),
      onReconnect: () => changeOutput(ui, pageId, { status: '▸ running' }),
      onStart: () => changeOutput(ui, pageId, { status: '▸ running' }),
      async write(stream, bytes) {
        output.append(stream, bytes)
        shown.soon()
      },
      onGap(missing) {
        output.add(gapLine(missing))
        shown.soon()
      },
    })
    showExitStatus(ui, page, ended)
  } catch (error) {
    if (findOutput(ui, pageId)) await showResult(ui, page, describeError(error))
  } finally {
    left()
    shown.now()
  }
}

/**
 * Shows the stored result of a command after following it has failed, for example because the session ended.
 */
async function showResult(ui: Ui, page: OutputPage, why: CliError): Promise<void> {
  const { pageId, id, execId, output } = page
  const ended = await createRemote(ui.api, id)
    .get(execId!)
    .catch(() => {
      changeOutput(ui, pageId, { status: 'unknown', isRunning: false })
      return Promise.reject(why)
    })
  if (!findOutput(ui, pageId)) return
  if (ended.stdout !== '' || ended.stderr !== '') output.add(ended.stdout + ended.stderr)
  changeOutput(ui, pageId, { status: statusLine(ended), isRunning: false })
  if (ended.stdout_bytes + ended.stderr_bytes > 0 && output.total === 0)
    showError(ui, new CliError('failed', 'The output was deleted together with the session.'))
}

/** Limits how often output is drawn, because a command can print faster than the screen can be redrawn. */
function showSoon(ui: Ui, pageId: number) {
  let timer: NodeJS.Timeout | undefined
  const now = () => {
    clearTimeout(timer)
    timer = undefined
    if (findOutput(ui, pageId)) ui.store.set({})
  }
  return {
    now,
    soon() {
      timer ??= setTimeout(now, showMs)
    },
  }
}
