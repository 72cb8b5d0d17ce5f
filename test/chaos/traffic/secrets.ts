/** Secrets come and go, and none is shown in clear. */
import { attempt } from '../ledger.ts'
import { run } from './commands.ts'
import { anyApi, type Lane, newCommand, newToken, writesItself } from './lane.ts'

export async function secrets(lane: Lane): Promise<void> {
  const { account, ledger } = lane
  const name = `S_${newToken().replaceAll('-', '_').toUpperCase()}`
  const value = `hidden-${newToken()}-value`
  const made = await attempt(ledger, 'createSecret', (signal) =>
    account.call('createSecret', { body: { name, value }, api: anyApi(lane), signal }),
  )
  if ('ok' in made) {
    const entry = newCommand(lane, 'with a secret', { exitCode: 0, stdout: `[secret ${name}]\n`, stderr: '' })
    const result = await run(lane, entry, { command: `${writesItself(entry)}; echo "$${name}"` })
    if (result?.stdout.includes(value)) ledger.wrong('a secret was shown', { entry, result }, [result.id])
    await attempt(ledger, 'listSecrets', (signal) =>
      account.call('listSecrets', { api: anyApi(lane), signal }),
    )
  }
  await attempt(ledger, 'deleteSecret', (signal) =>
    account.call('deleteSecret', { params: { name }, api: anyApi(lane), signal }),
  )
}

export async function lists(lane: Lane): Promise<void> {
  const { account, ledger, params } = lane
  const listed = await attempt(ledger, 'listExecs', (signal) =>
    account.call('listExecs', { params, query: { limit: 100 }, api: anyApi(lane), signal }),
  )
  // What was told of a command before stays true in the list.
  for (const { id, status, exit_code } of 'ok' in listed ? listed.ok.body.data : []) {
    const told = lane.sandbox.commands.flatMap((entry) => entry.told).find((each) => each.id === id)
    // An end may be told a moment before PostgreSQL has it; the rows are looked at in the end (checks/commands.ts).
    const isLate = told?.status === 'exited' && status !== 'exited'
    if (
      told &&
      !isLate &&
      told.status !== 'killed' &&
      (told.status !== status || told.exitCode !== exit_code)
    ) {
      ledger.wrong(
        'the list contradicts what a client was told',
        { told, listed: { id, status, exit_code } },
        [id],
      )
    }
  }
  await attempt(ledger, 'getUsage', (signal) => account.call('getUsage', { api: anyApi(lane), signal }))
}
