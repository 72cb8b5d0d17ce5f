import { shellWord } from '../../shared/contract/shell-words.ts'
import { defineCommand } from '../core/command.ts'
import { addCredentialOptions, type CredentialOptions, readNewCredentials } from '../core/credentials.ts'
import { fields } from '../core/output.ts'
import { describeReplacedKey, keyIn, type SavedKey } from '../core/saved-keys.ts'
import { signUp } from '../core/sign-up.ts'

export const define = defineCommand<CredentialOptions>({
  declare: (command) =>
    addCredentialOptions(command).option(
      '--password <password>',
      'the password; visible in process lists and shell histories',
    ),
  notes: `
Creates the account, logs in, creates an API key, and saves the base address and the key. Prompts for values that no
option provides, and does not echo the password. If a step fails, run the command again with the same password to
continue.`,
  examples: [
    'sandlot signup --url https://sandlot.example',
    'sandlot signup --profile work --url https://sandlot.work.example',
    'pass show sandlot | sandlot signup --url https://sandlot.example --email ada@example.com --password-stdin',
  ],
  fields: ['account', 'account_existed', 'api_key', 'base_url', 'file'],
  makesProfile: true,
  handle: async (invocation) => {
    const { settings, api, output } = invocation
    const base_url = await settings.baseUrl()
    // Fails before creating the account if the settings file cannot be read.
    const former = keyIn(await settings.saved())
    const credentials = await readNewCredentials(invocation)

    const { account, made, key } = await signUp(api, settings, base_url, credentials)
    if (!made)
      output.note(
        `${account.email} already has an account with this password. A new API key was created for this account.`,
      )

    if (former !== undefined) output.note(`${describeReplacedKey(former)}\n${loginHint(former)}`)
    for (const name of settings.shadowing()) output.note(`${name} is set and overrides the saved value.`)
    const { key: _, ...shown } = key
    output.result(
      { account, account_existed: !made, api_key: shown, base_url, file: settings.file },
      fields({
        account: `${account.email} (${account.id})`,
        'api key': `…${key.last_four} (${key.id})`,
        saved: settings.file,
      }),
    )
    output.aside(`Next: ${settings.ownCall()} session create`)
    if (!settings.isOnPath())
      output.aside('To add sandlot to your PATH, run `npm install -g ./cli` in your clone of its repository.')
  },
})

function loginHint({ address }: SavedKey): string {
  const url = address === undefined ? '' : ` --url ${shellWord(address)}`
  return `To switch back to the previous account, run \`sandlot login${url}\`. Use --profile NAME to keep both accounts.`
}
