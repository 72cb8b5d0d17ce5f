/** Creates and deletes secrets. Their values must be redacted. */
import { attempt } from '../recorder.ts'
import { run } from './commands.ts'
import { anyApi, type Lane, newCommand, newToken, recordsStart } from './lane.ts'

export async function secrets(lane: Lane): Promise<void> {
  const { account, recorder } = lane
  const name = `S_${newToken().replaceAll('-', '_').toUpperCase()}`
  const value = `hidden-${newToken()}-value`
  const made = await attempt(recorder, 'createSecret', (signal) =>
    account.call('createSecret', { body: { name, value }, api: anyApi(lane), signal }),
  )
  if ('ok' in made) {
    const entry = newCommand(lane, 'with a secret', { exitCode: 0, stdout: `[secret ${name}]\n`, stderr: '' })
    const result = await run(lane, entry, { command: `${recordsStart(entry)}; echo "$${name}"` })
    if (result?.stdout.includes(value))
      recorder.wrong('a secret was not redacted', { entry, result }, [result.id])
    await attempt(recorder, 'listSecrets', (signal) =>
      account.call('listSecrets', { api: anyApi(lane), signal }),
    )
  }
  await attempt(recorder, 'deleteSecret', (signal) =>
    account.call('deleteSecret', { params: { name }, api: anyApi(lane), signal }),
  )
}

export async function lists(lane: Lane): Promise<void> {
  const { account, recorder, params } = lane
  const listed = await attempt(recorder, 'listExecs', (signal) =>
    account.call('listExecs', { params, query: { limit: 100 }, api: anyApi(lane), signal }),
  )
  // The list must agree with reported results.
  for (const { id, status, exit_code } of 'ok' in listed ? listed.ok.body.data : []) {
    const reported = lane.sandbox.commands.flatMap((entry) => entry.reported).find((each) => each.id === id)
    // A row may be updated after its exit status has been reported. checks/commands.ts compares the rows later.
    const isLate = reported?.status === 'exited' && status !== 'exited'
    if (
      reported &&
      !isLate &&
      reported.status !== 'killed' &&
      (reported.status !== status || reported.exitCode !== exit_code)
    ) {
      recorder.wrong(
        'the list contradicts a reported result',
        { reported, listed: { id, status, exit_code } },
        [id],
      )
    }
  }
  await attempt(recorder, 'getUsage', (signal) => account.call('getUsage', { api: anyApi(lane), signal }))
}
