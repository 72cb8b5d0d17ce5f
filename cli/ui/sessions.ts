import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { CliError } from '../core/errors.ts'
import { readSeconds } from '../core/parse.ts'
import { chosenSession, useSession as makeCurrent } from '../core/session.ts'
import { describeDestroyed } from './describe.ts'
import { attempt, closeDialog, openDialog, openForm, openPrompt, showNotice, whileBusy } from './dialogs.ts'
import { newFolder } from './folder.ts'
import { field, newForm } from './form.ts'
import { loadDestroyed, putSessions } from './load-sessions.ts'
import { newPageId, openPage } from './pages.ts'
import { nameOf, type SessionPage, sessionInFront } from './state.ts'
import { oneLine } from './text.ts'
import type { Ui } from './ui.ts'

export const activeInFront = ({ store }: Ui): Sandbox => requireActive(sessionInFront(store.get()))

/** @throws {CliError} if there is no session, or if the session has ended */
export function requireActive(session: Sandbox | undefined): Sandbox {
  if (!session) throw new CliError('no_session', 'There are no sessions. Press n to create one.')
  if (session.state === 'active') return session
  throw new CliError(
    'sandbox_destroyed',
    `Session ${nameOf(session)} has ended: ${describeDestroyed(session)}.`,
  )
}

export function openSession(ui: Ui, tab: SessionPage['tab'] = 'commands'): SessionPage | undefined {
  const session = sessionInFront(ui.store.get())
  if (!session) return undefined
  const page: SessionPage = {
    at: 'session',
    pageId: newPageId(),
    id: session.id,
    tab,
    commands: undefined,
    askedAt: 0,
    selectedCommand: undefined,
    folder: newFolder('/workspace'),
  }
  openPage(ui, page)
  ui.refresh()
  return page
}

export function askNewSession(ui: Ui): void {
  const fields = [
    field('name', 'Name', { placeholder: 'none' }),
    field('image', 'Image', { placeholder: "the service's default" }),
    field('ttl', 'Lifetime', { placeholder: 'the maximum, or a duration such as 10m' }),
  ]
  const create = (values: Record<string, string>) =>
    void whileBusy(ui, 'creating', async () => {
      const session = await createSession(ui, values)
      putSessions(ui, [session])
      ui.store.set({ selected: session.id, filter: '' })
      showNotice(ui, `Session ${nameOf(session)} is ${session.ready_at === null ? 'starting' : 'ready'}.`)
      ui.refresh()
    })
  openForm(ui, newForm('New session', fields, create, { enterWord: 'create' }))
}

function createSession({ api }: Ui, { name, image, ttl }: Record<string, string>): Promise<Sandbox> {
  return api.call('createSandbox', {
    body: {
      name: name || undefined,
      image: image || undefined,
      ttl_seconds: ttl ? readSeconds(ttl, 'Lifetime') : undefined,
    },
    headers: { 'idempotency-key': crypto.randomUUID(), prefer: 'respond-async' },
  })
}

export function askToDestroy(ui: Ui): void {
  const session = activeInFront(ui)
  const destroy = async () => {
    showNotice(ui, `Destroying ${nameOf(session)}…`)
    const ended = await ui.api.call('destroySandbox', { params: { id: session.id } })
    putSessions(ui, [ended])
    showNotice(ui, `Session ${nameOf(session)} was destroyed.`)
    ui.refresh()
  }
  const question = `Destroy ${oneLine(nameOf(session))}?`
  openDialog(ui, { kind: 'confirm', question, onYes: () => attempt(ui, destroy) })
}

export function useSession(ui: Ui): void {
  const session = activeInFront(ui)
  attempt(ui, async () => {
    await makeCurrent(ui.settings, () => ui.api.call('getSandbox', { params: { id: session.id } }))
    const chosen = await chosenSession(ui.settings)
    ui.store.set({ chosen: chosen?.value })
    const isSaved = chosen === undefined || chosen.value === session.id
    const override = isSaved ? '' : ` ${chosen.source} is set and overrides it.`
    showNotice(ui, `${nameOf(session)} is the current session.${override}`)
  })
}

export function askFilter(ui: Ui): void {
  const { filter: before, selected } = ui.store.get()
  const form = newForm(
    'Filter',
    [field('filter', '/', { text: before, placeholder: 'words of name, id, image or metadata' })],
    () => closeDialog(ui),
    {
      onChange: ({ filter = '' }) => ui.store.set({ filter }),
      onCancel: () => ui.store.set({ filter: before, selected }),
    },
  )
  openPrompt(ui, form)
}

export function copyId(ui: Ui): void {
  const session = sessionInFront(ui.store.get())
  if (session) copy(ui, session.id)
}

/** Copies text with OSC 52, which sets the clipboard of the user's machine, even over SSH. */
export function copy(ui: Ui, text: string): void {
  ui.write(`\u001b]52;c;${Buffer.from(text).toString('base64')}\u0007`)
  showNotice(ui, `Copied: ${text}`)
}

export function toggleDestroyed(ui: Ui): void {
  const showsDestroyed = !ui.store.get().showsDestroyed
  ui.store.set({ showsDestroyed })
  if (showsDestroyed && ui.store.get().destroyedFrom === undefined) attempt(ui, () => loadDestroyed(ui))
}
