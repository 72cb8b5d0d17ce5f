/** Shows output and files in the user's pager. While loading, Esc cancels and most other keys are ignored. */
import { addAbortListener } from 'node:events'
import { bytesOf, offsetOf } from '../../shared/contract/exec-events.ts'
import { wantsColor } from '../core/drawing.ts'
import type { OpenExchange } from '../core/http.ts'
import { showInPager } from '../core/pager.ts'
import { OutputCleaner } from '../core/printable.ts'
import { isGone } from '../exec/exit-status.ts'
import { readAll } from '../exec/follow.ts'
import { createRemote } from '../exec/remote.ts'
import { attempt } from './dialogs.ts'
import { findPage } from './pages.ts'
import type { OutputPage } from './state.ts'
import { beginOpening, finishOpening, isOpening } from './type-ahead.ts'
import type { Ui } from './ui.ts'

type ReadText = (signal: AbortSignal) => AsyncIterable<string>

/** Opens the pager with all output that the service still stores. */
export function pageOutput(ui: Ui): void {
  const page = findPage(ui.store.get(), 'output')
  if (page?.execId !== undefined) attempt(ui, () => openPager(ui, (signal) => readOutput(ui, page, signal)))
}

/**
 * Opens a file in the pager.
 * @throws {CliError} `is_directory` for a link to a folder, or another service error
 */
export const pageFile = (ui: Ui, id: string, path: string): Promise<void> =>
  openPager(ui, (signal) => readFile(ui, id, path, signal))

async function openPager(ui: Ui, read: ReadText): Promise<void> {
  const opening = beginOpening(ui, 'pager')
  const givenUp = new AbortController()
  const unsubscribe = ui.store.subscribe(() => {
    if (!isOpening(ui, opening)) givenUp.abort()
  })
  try {
    await showInPager(ui.settings.pager(), read(givenUp.signal), ui.handOver, givenUp.signal)
  } catch (error) {
    if (isOpening(ui, opening)) throw error
  } finally {
    unsubscribe()
    finishOpening(ui, opening)
  }
}

async function* readFile({ api }: Ui, id: string, path: string, signal: AbortSignal) {
  const query = { path, reveal: 'false' as const }
  const { response, fail } = closing(await api.open('readRawFile', { params: { id }, query }), signal)
  const clean = newCleaner()
  try {
    for await (const bytes of response) yield clean.clean(bytes)
  } catch (error) {
    throw fail(error)
  }
  yield clean.flush()
}

async function* readOutput(ui: Ui, { id, execId, output }: OutputPage, signal: AbortSignal) {
  const remote = createRemote(ui.api, id)
  const cleaners = { stdout: newCleaner(), stderr: newCleaner() }
  // After the session has ended, only the page still has the output.
  const end = await remote
    .printedSoFar(execId!)
    .catch((error) => (isGone(error) ? undefined : Promise.reject(error)))
  if (!end) yield cleaners.stdout.clean(Buffer.from(output.text))
  const open = async (lastId?: string) => {
    signal.throwIfAborted()
    return closing(await remote.follow(execId!, lastId), signal)
  }
  const events = end ? readAll(await open(), open) : []
  for await (const { id, event, data } of events) {
    if (event === 'gap') yield gapLine(data)
    if (event === 'stdout' || event === 'stderr') yield cleaners[event].clean(bytesOf(data))
    const at = offsetOf(id)
    if (event === 'exit' || (at.stdout >= end!.stdout && at.stderr >= end!.stderr)) break
  }
  yield cleaners.stdout.flush() + cleaners.stderr.flush()
}

export const gapLine = (missing: { stdout_bytes: number; stderr_bytes: number }): string =>
  `\n… ${missing.stdout_bytes + missing.stderr_bytes} bytes are no longer stored …\n`

function closing(opened: OpenExchange, signal: AbortSignal): OpenExchange {
  addAbortListener(signal, () => opened.response.destroy())
  return opened
}

const newCleaner = () => new OutputCleaner({ styles: wantsColor(process.stdout) })
