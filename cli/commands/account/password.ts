import { defineCommand } from '../../core/command.ts'
import {
  addCredentialOptions,
  type CredentialOptions,
  keptToken,
  readEmail,
  readNewPassword,
} from '../../core/credentials.ts'
import { savedLogin } from '../../core/settings.ts'

export const define = defineCommand<CredentialOptions>({
  declare: (command) =>
    addCredentialOptions(command, 'read two lines from stdin: the current password, then the new one'),
  notes:
    '\nAsks for the current password and the new one. Revokes every session token of the account; API keys remain valid.',
  examples: [
    'sandlot account password',
    'printf \'%s\\n%s\\n\' "$old" "$new" | sandlot account password --email ada@example.com --password-stdin',
  ],
  fields: ['email', 'changed'],
  handle: async (invocation) => {
    const { settings, api, output } = invocation
    await settings.baseUrl()
    const kept = await keptToken(invocation)
    const email = kept === undefined ? await readEmail(invocation) : ''
    const { password, newPassword } = await readNewPassword(invocation)
    const token = kept ?? (await api.call('logIn', { body: { email, password } })).token
    const body = { current_password: password, new_password: newPassword }
    const changed = await api.call('changePassword', { body, token })
    // A concurrent logout may have removed the login.
    if (kept !== undefined)
      await settings.save((saved) => (saved.token === kept ? savedLogin(changed) : undefined))
    const { account } = changed
    output.result({ email: account.email, changed: true }, `${account.email}\n`)
    const revoked = kept === undefined ? 'all session tokens' : 'all other session tokens'
    output.aside(`The password was changed, and ${revoked} were revoked. API keys remain valid.`)
  },
})
