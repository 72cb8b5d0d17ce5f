import { defineCommand, type Invocation } from '../../core/command.ts'
import { addCredentialOptions, type CredentialOptions, readCredentials } from '../../core/credentials.ts'
import { CliError } from '../../core/errors.ts'
import { noAccount } from '../../core/settings.ts'

interface Options extends CredentialOptions {
  confirm?: string
}

export const define = defineCommand<Options>({
  declare: (command) =>
    addCredentialOptions(command).option(
      '--confirm <email>',
      "the account's email address, instead of the second confirmation",
    ),
  notes: `
Asks for the email address and the password, then for confirmation twice: yes or no, and the address typed again.
Without a terminal, --yes and --confirm are required. Sessions end immediately, and API keys stop working within a
second. The deletion cannot be undone. This client also forgets the account's key.`,
  examples: [
    'sandlot account delete',
    'pass show sandlot | sandlot account delete --email ada@example.com --password-stdin --yes --confirm ada@example.com',
  ],
  fields: ['id', 'email', 'sandboxes_ended'],
  handle: async (invocation) => {
    const { settings, api, output } = invocation
    await settings.baseUrl()
    const credentials = await readCredentials(invocation)
    const { account, token } = await api.call('logIn', { body: credentials })
    await confirmIntent(invocation, account.email)
    const isOwn = (await accountOfKey(invocation)) === account.id
    const deleted = await api.call('deleteAccount', {
      body: { current_password: credentials.password },
      token,
    })
    if (isOwn) await settings.save({ ...noAccount, api_key: undefined })
    output.result(deleted, `${deleted.email}\n`)
    output.aside(
      'The account was deleted. Its email address can be used to sign up again after a few minutes.',
    )
  },
})

async function confirmIntent({ options, ask }: Invocation<Options>, email: string): Promise<void> {
  const question = `Permanently delete the account ${email} with its sessions, keys and secrets?`
  const otherwise = 'Nothing was deleted.'
  await ask.confirm(question, otherwise)
  const typed = options.confirm ?? (await ask.text(`Type ${email} to delete it`, '--confirm EMAIL'))
  if (typed.trim().toLowerCase() !== email) throw new CliError('failed', otherwise)
}

/**
 * Returns the id of the account that owns the saved API key, or undefined if the request fails or would use a
 * different key, such as the one in SANDLOT_API_KEY.
 */
async function accountOfKey({ settings, api }: Invocation<Options>): Promise<string | undefined> {
  const key = await settings.findKey(await settings.baseUrl())
  if (key === undefined || key.value !== (await settings.saved()).api_key) return undefined
  return await api.call('getAccount', {}).then(
    ({ id }) => id,
    () => undefined,
  )
}
