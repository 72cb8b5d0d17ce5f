/** `sandlot account password`: sets a new password, which ends all sessions. Logs in for this run alone. */
import { defineCommand } from '../../core/command.ts'
import { addCredentialOptions, type CredentialOptions, readNewPassword } from '../../core/credentials.ts'

export const define = defineCommand<CredentialOptions>({
  declare: (command) =>
    addCredentialOptions(command, 'read two lines from stdin: the password, then the new one'),
  notes:
    '\nAsks for the old password and the new one. Ends every session token of the account; API keys go on.',
  examples: [
    'sandlot account password',
    'printf \'%s\\n%s\\n\' "$old" "$new" | sandlot account password --email ada@example.com --password-stdin',
  ],
  fields: ['email', 'changed'],
  handle: async (invocation) => {
    const { settings, api, output } = invocation
    await settings.baseUrl()
    const { email, password, newPassword } = await readNewPassword(invocation)
    const { token } = await api.call('logIn', { body: { email, password } })
    const body = { current_password: password, new_password: newPassword }
    const { account } = await api.call('changePassword', { body, token })
    output.result({ email: account.email, changed: true }, `${account.email}\n`)
    output.aside('The password is changed, and every session has ended. API keys are as they were.')
  },
})
