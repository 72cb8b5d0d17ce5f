/** Prompts for the address and credentials, on the first run or after a rejected key. */
import { readAddress } from '../core/address.ts'
import { createApi } from '../core/api.ts'
import { noAccount, readKey, Settings } from '../core/settings.ts'
import { signUp } from '../core/sign-up.ts'
import { closeDialog, formOf, openForm, showNotice, whileBusy } from './dialogs.ts'
import { type Form, field, newForm } from './form.ts'
import { changeOpen, findPage, newPageId } from './pages.ts'
import type { FirstRunPage } from './state.ts'
import type { Ui } from './ui.ts'

export function openFirstRun(ui: Ui, error?: string): void {
  const address = ui.store.get().address ?? ''
  const page: FirstRunPage = { at: 'first-run', pageId: newPageId(), step: 'address', address, method: 0 }
  ui.store.set({ pages: [page], dialog: undefined, opening: undefined, trouble: undefined })
  if (address === '') askAddress(ui)
  else go(ui, { step: 'method' })
  if (error !== undefined) ui.store.set({ notice: { text: error, isError: true } })
}

export const methods = [
  { step: 'sign-up', label: 'Sign up, or log in: email and password' },
  { step: 'key', label: 'Paste an API key' },
] as const

export function moveMethod(ui: Ui, by: number): void {
  changeOpen(ui, 'first-run', ({ method }) => ({
    method: Math.max(0, Math.min(methods.length - 1, method + by)),
  }))
}

export function takeMethod(ui: Ui): void {
  const page = findPage(ui.store.get(), 'first-run')
  if (page?.step !== 'method') return
  if (methods[page.method]!.step === 'sign-up') askToSignUp(ui)
  else askKey(ui)
}

export function stepBack(ui: Ui) {
  const page = findPage(ui.store.get(), 'first-run')
  if (!page || page.step === 'address') return ui.quit()
  if (page.step === 'method') return askAddress(ui)
  closeDialog(ui)
  go(ui, { step: 'method' })
}

const go = (ui: Ui, change: Partial<FirstRunPage>) => changeOpen(ui, 'first-run', () => change)

function askAddress(ui: Ui): void {
  go(ui, { step: 'address' })
  const text = findPage(ui.store.get(), 'first-run')?.address ?? ''
  const address = field('address', 'Address', { text, placeholder: 'https://… or http://localhost:8080' })
  const take = (values: Record<string, string>) =>
    void whileBusy(ui, 'checking the address', async () => {
      const address = readAddress(values.address!.trim(), 'typed here')
      go(ui, { step: 'method', address })
    })
  ask(ui, newForm('Where is the service?', [address], take), 'quit')
}

function askToSignUp(ui: Ui): void {
  go(ui, { step: 'sign-up' })
  const fields = [
    field('email', 'Email'),
    field('password', 'Password', { isHidden: true, placeholder: '10 characters or more' }),
  ]
  const take = ({ email = '', password = '' }: Record<string, string>) =>
    void whileBusy(ui, 'signing up', async () => {
      const { address } = findPage(ui.store.get(), 'first-run')!
      const settings = new Settings({ ...profileOf(ui), url: address })
      const { account, made, key } = await signUp(createApi(settings), ui.settings, address, {
        email: email.trim(),
        password,
      })
      enter(ui, address, key.key)
      showNotice(
        ui,
        `${made ? 'Signed up' : 'Logged in'} as ${account.email}. The API key is saved in ${ui.settings.file}.`,
      )
    })
  ask(ui, newForm('Sign up, or log in to your account', fields, take))
}

function askKey(ui: Ui): void {
  go(ui, { step: 'key' })
  const key = field('key', 'API key', { isHidden: true, placeholder: 'sandlot_live_…' })
  const take = (values: Record<string, string>) =>
    void whileBusy(ui, 'checking the key', async () => {
      const { address } = findPage(ui.store.get(), 'first-run')!
      const apiKey = readKey(values.key!.trim(), 'pasted')
      const account = await createApi(new Settings({ url: address, apiKey })).call('getAccount', {})
      await ui.settings.save({ ...noAccount, base_url: address, api_key: apiKey })
      enter(ui, address, apiKey)
      showNotice(ui, `Welcome, ${account.email}. The API key is saved in ${ui.settings.file}.`)
    })
  ask(ui, newForm('Paste an API key', [key], take))
}

const ask = (ui: Ui, form: Form, escWord = 'back') =>
  openForm(ui, { ...form, escWord, onCancel: () => stepBack(ui) })

const profileOf = ({ settings: { profile } }: Ui) => (profile === undefined ? {} : { profile })

/** Connects with the typed address and key, which override flags and environment variables. */
function enter(ui: Ui, url: string, apiKey: string): void {
  if (formOf(ui.store.get())) closeDialog(ui)
  ui.connect(new Settings({ ...profileOf(ui), url, apiKey }))
}
