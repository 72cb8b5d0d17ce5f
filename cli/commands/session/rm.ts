import type { Reply } from '../../core/api.ts'
import { addSessionOption, defineCommand, type Invocation } from '../../core/command.ts'
import { CliError, describeError } from '../../core/errors.ts'
import { describeSession, idsOf, listActive } from '../../core/session.ts'
import { sandboxFields } from '../../core/shapes.ts'
import { waitOut } from '../../core/waiting.ts'

interface Options {
  all?: boolean
  session?: string
}

type Named = Parameters<typeof describeSession>[0]

interface Outcome {
  destroyed: Reply<'destroySandbox'>[]
  failures: { id: string; error: CliError }[]
}

export const define = defineCommand<Options>({
  declare: (command) =>
    addSessionOption(command)
      .argument('[id...]', 'the sessions, by id or name; by default the current one, or the only active one')
      .option('-a, --all', 'destroy all active sessions'),
  notes: `
Asks for confirmation unless the sessions are named; without a terminal, --yes is then required. Destroys nothing if a
name does not match exactly one active session. If a session cannot be destroyed, continues with the others.`,
  examples: [
    'sandlot session rm',
    'sandlot session rm build test',
    'sandlot session rm sbx_01kb0e6g8xq4r9w2t7v5m3n1ab',
    'sandlot session rm --all --yes',
  ],
  fields: sandboxFields,
  handle: remove,
})

async function remove(invocation: Invocation<Options>): Promise<void> {
  const { args, options, output, ask } = invocation
  const chosen = await choose(invocation)
  const ids = chosen.map(({ id }) => id)
  const isOne = ids.length === 1
  const words = chosen.map(describeSession).join(', ')
  const isNamed = args.length > 0 || options.session !== undefined
  if (ids.length > 0 && !isNamed) {
    await ask.confirm(
      `Destroy ${isOne ? words : `${ids.length} sessions: ${words}`}?`,
      'Nothing was destroyed.',
    )
  }
  const { destroyed, failures } = await destroyAll(invocation, ids)
  const text = destroyed.map(({ id }) => `${id}\n`).join('')
  const sum = `Destroyed ${destroyed.length} of ${ids.length} sessions.`
  if (failures.length === 0) {
    output.result({ data: destroyed }, text)
    if (options.all) output.note(ids.length === 0 ? 'No session is active.' : sum)
    return
  }
  // With --json, the error contains the destroyed sessions.
  if (!output.json) output.result(undefined, text)
  throw combine(failures, destroyed, isOne ? '' : `\n${sum}`)
}

async function choose({ args, options, session, api }: Invocation<Options>): Promise<Named[]> {
  if (!options.all) {
    const ids = args.length > 0 ? await idsOf(args, api) : [await session()]
    return ids.map((id, index) => ({ id, name: args[index] ?? null }))
  }
  if (args.length > 0 || options.session !== undefined) {
    throw new CliError('usage', 'Pass either sessions or --all, not both.')
  }
  return await listActive(api)
}

/** Destroys the sessions one by one. Continues after a failure, and waits while a rate limit is exceeded. */
async function destroyAll({ api, output }: Invocation<Options>, ids: string[]): Promise<Outcome> {
  const outcome: Outcome = { destroyed: [], failures: [] }
  using progress = output.progress('destroying')
  for (const [index, id] of ids.entries()) {
    progress.show(`destroying ${index + 1} of ${ids.length}: ${id}`)
    const destroy = () => api.call('destroySandbox', { params: { id } })
    try {
      outcome.destroyed.push(await waitOut(api, destroy, { note: output.note, show: progress.show }))
    } catch (error) {
      outcome.failures.push({ id, error: describeError(error) })
    }
  }
  return outcome
}

/** Combines all failures into one error, with the code of the first failure. */
function combine(failures: Outcome['failures'], destroyed: unknown[], sum: string): CliError {
  const { error } = failures[0]!
  const lines = failures.map(({ id, error: { message } }) =>
    message.includes(id) ? message : `${id}: ${message}`,
  )
  return error.with({
    message: `${lines.join('\n')}${sum}`,
    details: { ...error.details, failed: failures.map(({ id }) => id), destroyed },
  })
}
