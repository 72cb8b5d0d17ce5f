import type { ExecOutcome, ExecSummary } from '../../shared/contract/exec.ts'
import { CliError, describeError, exitCodes } from '../core/errors.ts'
import type { OpenExchange } from '../core/http.ts'
import { follow } from '../exec/follow.ts'
import { createRemote } from '../exec/remote.ts'
import { RetryPolicy } from '../exec/retry.ts'
import { statusLine } from './describe.ts'
import { attempt, closeDialog, showError, showNotice } from './dialogs.ts'
import { OutputTail } from './output-tail.ts'
import { gapLine } from './pager.ts'
import {
  changeOpen,
  changePage,
  findPage,
  goBack,
  newPageId,
  openPage,
  pageWith,
  replacePage,
} from './pages.ts'
import { attachHere } from './shell.ts'
import { isOpenTerminal, nameInFront, type OutputPage, pageOf, selectedCommand } from './state.ts'
import { oneLine } from './text.ts'
import type { Ui } from './ui.ts'

/** Milliseconds between redraws, because a command can print faster than the screen can be redrawn. */
const drawMs = 40

export async function runCommand(ui: Ui, id: string, command: string): Promise<void> {
  const page = showOutput(ui, id, { command })
  const remote = createRemote(ui.api, id)
  let execId: string | undefined
  try {
    const { stdout: _out, stderr: _err, ...started } = await remote.launch({ command })
    execId = started.id
    const summary = { ...started, command, background: true, tty: false }
    changeList(ui, id, (commands) => [summary, ...commands.filter((other) => other.id !== started.id)])
    if (interruptedEarly.delete(page.pageId)) await remote.signal(execId, 'INT')
    if (!isOpen(ui, page)) return
    changePage(ui, page, { execId, status: statusLine(started) })
    // The command receives no stdin.
    await remote.endStdin(execId, 0).catch(() => {})
    await followOutput(ui, page, execId)
  } catch (error) {
    // With an id, the command is running, and only following it has failed.
    if (execId === undefined) changePage(ui, page, { status: 'not run', isRunning: false })
    throw error
  }
}

export function openCommand(ui: Ui) {
  const page = findPage(ui.store.get(), 'session')
  const command = page && selectedCommand(page)
  if (!command) return
  if (isOpenTerminal(command))
    return attempt(ui, () => attachHere(ui, createRemote(ui.api, page.id), command.id))
  const output = showOutput(ui, page.id, {
    execId: command.id,
    command: command.command,
    status: statusLine(command),
    isRunning: command.status === 'running',
  })
  attempt(ui, () => followOutput(ui, output, command.id))
}

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

/** Ids of pages whose command is interrupted once it starts, because the user has already pressed Ctrl-C. */
const interruptedEarly = new Set<number>()

/**
 * Handles Ctrl-C. On the output page, the first press interrupts a running command, and the next leaves the
 * page. On other pages, Ctrl-C quits the picker.
 */
export function interruptOrQuit(ui: Ui) {
  const state = ui.store.get()
  const page = pageOf(state)
  if (page.at !== 'output') return ui.quit(exitCodes.interrupted)
  if (state.dialog) return closeDialog(ui)
  if (page.isRunning && !page.isInterrupted) return interrupt(ui)
  goBack(ui)
  if (page.isRunning) showNotice(ui, `The command in ${oneLine(nameInFront(state))} keeps running.`)
}

/** Changes the displayed list of commands without a request. Does nothing until the list has been loaded. */
const changeList = (ui: Ui, id: string, change: (commands: ExecSummary[]) => ExecSummary[]): void =>
  changeOpen(ui, 'session', (page) =>
    page.id === id && page.commands ? { commands: change(page.commands) } : {},
  )

function showExitStatus(ui: Ui, page: OutputPage, ended: ExecOutcome): void {
  changePage(ui, page, ({ isInterrupted }) => {
    if (isInterrupted) showNotice(ui, 'Interrupted the command.')
    return { status: statusLine(ended), isRunning: false }
  })
  changeList(ui, page.id, (all) => all.map((each) => (each.id === ended.id ? { ...each, ...ended } : each)))
}

function showOutput(ui: Ui, id: string, shown: Partial<OutputPage> & { command: string }): OutputPage {
  const page: OutputPage = {
    at: 'output',
    pageId: newPageId(),
    id,
    execId: undefined,
    output: new OutputTail(),
    status: '▸ starting',
    isRunning: true,
    isInterrupted: false,
    top: 'end',
    ...shown,
  }
  if (pageOf(ui.store.get()).at === 'output') replacePage(ui, page)
  else openPage(ui, page)
  return page
}

const isOpen = ({ store }: Ui, { pageId }: OutputPage): boolean => pageWith(store.get(), pageId) !== undefined

/** Follows the output until the command ends or the page is closed. */
async function followOutput(ui: Ui, page: OutputPage, execId: string): Promise<void> {
  if (!isOpen(ui, page)) return
  const { output } = page
  const remote = createRemote(ui.api, page.id)
  let opened: OpenExchange | undefined
  const unsubscribe = ui.store.subscribe(() => {
    if (!isOpen(ui, page)) opened?.response.destroy()
  })
  const open = async (lastEventId?: string) => {
    if (!isOpen(ui, page)) throw new CliError('failed', 'The page was closed.')
    opened = await remote.follow(execId, lastEventId)
    return opened
  }
  let isDrawing = false
  const drawSoon = () => {
    if (isDrawing) return
    isDrawing = true
    setTimeout(() => {
      isDrawing = false
      ui.store.set({})
    }, drawMs)
  }
  try {
    const ended = await follow(undefined, open, {
      retry: new RetryPolicy({ maxMs: Number.POSITIVE_INFINITY }),
      onDisconnect: () => changePage(ui, page, { status: '… connection lost; retrying' }),
      onReconnect: () => changePage(ui, page, { status: '▸ running' }),
      onStart: () => changePage(ui, page, { status: '▸ running' }),
      async write(stream, bytes) {
        output.append(stream, bytes)
        drawSoon()
      },
      onGap(missing) {
        output.add(gapLine(missing))
        drawSoon()
      },
    })
    showExitStatus(ui, page, ended)
  } catch (error) {
    if (isOpen(ui, page)) await showResult(ui, page, execId, describeError(error))
  } finally {
    unsubscribe()
  }
}

/** Shows the stored result of a command that can no longer be followed, for example in an ended session. */
async function showResult(ui: Ui, page: OutputPage, execId: string, why: CliError): Promise<void> {
  const { output } = page
  const ended = await createRemote(ui.api, page.id)
    .get(execId)
    .catch(() => {
      changePage(ui, page, { status: 'unknown', isRunning: false })
      return Promise.reject(why)
    })
  if (!isOpen(ui, page)) return
  output.add(ended.stdout + ended.stderr)
  changePage(ui, page, { status: statusLine(ended), isRunning: false })
  if (ended.stdout_bytes + ended.stderr_bytes > 0 && output.total === 0)
    showError(ui, new CliError('failed', 'The output was deleted along with the session.'))
}
