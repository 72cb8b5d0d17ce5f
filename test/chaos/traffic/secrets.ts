/** Creates and deletes secrets, and checks that their values are redacted. */
import { run } from './commands.ts'
import { type Lane, newCommand, newToken, recordsStart, send } from './lane.ts'

export async function secrets(lane: Lane): Promise<void> {
  const { recorder } = lane
  const name = `S_${newToken().replaceAll('-', '_').toUpperCase()}`
  const value = `hidden-${newToken()}-value`
  const made = await send(lane, 'createSecret', { body: { name, value } })
  if ('ok' in made) {
    const entry = newCommand(lane, 'with a secret', { exitCode: 0, stdout: `[secret ${name}]\n`, stderr: '' })
    const result = await run(lane, entry, { command: `${recordsStart(entry)}; echo "$${name}"` })
    if (result?.stdout.includes(value))
      recorder.wrong('a secret was not redacted', { entry, result }, [result.id])
    await send(lane, 'listSecrets')
  }
  await send(lane, 'deleteSecret', { params: { name } })
}

export async function lists(lane: Lane): Promise<void> {
  const { recorder, params } = lane
  const listed = await send(lane, 'listExecs', { params, query: { limit: 100 } })
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
  await send(lane, 'getUsage')
}
