import type { Reply } from '../../core/api.ts'
import { addSessionOption, defineCommand, type Invocation } from '../../core/command.ts'
import { CliError, describeError } from '../../core/errors.ts'
import { idsOf, listActive, wordsOf } from '../../core/session.ts'
import { sandboxFields } from '../../core/shapes.ts'
import { waitOut } from '../../core/waiting.ts'

interface Options {
  all?: boolean
  session?: string
}

type Named = Parameters<typeof wordsOf>[0]

interface Outcome {
  destroyed: Reply<'destroySandbox'>[]
  failures: { id: string; error: CliError }[]
}

export const define = defineCommand<Options>({
  declare: (command) =>
    addSessionOption(command)
      .argument('[id...]', 'the sessions, by id or name; by default the only active one')
      .option('-a, --all', 'every active session'),
  notes:
    '\nSessions that are named go without a question. --all, and the one that no word names, are asked for first; without a\nterminal that needs --yes. Does nothing when a name is not that of exactly one active session.\nWhen one cannot be destroyed, it goes on with the others.',
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
  const words = chosen.map(wordsOf).join(', ')
  const isNamed = args.length > 0 || options.session !== undefined
  if (ids.length > 0 && !isNamed) {
    await ask.confirm(
      `Destroy ${isOne ? words : `${ids.length} sessions: ${words}`}?`,
      'Nothing was destroyed.',
    )
  }
  const { destroyed, failures } = await destroyAll(invocation, ids)
  const text = destroyed.map(({ id }) => `${id}\n`).join('')
  const sum = `${destroyed.length} of ${ids.length} destroyed.`
  if (failures.length === 0) {
    output.result({ data: destroyed }, text)
    if (options.all) output.note(ids.length === 0 ? 'No session is active.' : sum)
    return
  }
  // With --json, the error lists the destroyed sessions.
  if (!output.json) output.result(undefined, text)
  throw combine(failures, destroyed, isOne ? '' : `\n${sum}`)
}

/** Sessions with their names, if known. */
async function choose({ args, options, session, api }: Invocation<Options>): Promise<Named[]> {
  if (!options.all) {
    const ids = args.length > 0 ? await idsOf(args, api) : [await session()]
    return ids.map((id, index) => ({ id, name: args[index] ?? null }))
  }
  if (args.length > 0 || options.session !== undefined) {
    throw new CliError('usage', 'Give sessions or --all, not both.')
  }
  return await listActive(api)
}

/** Continues after failures, and waits for rate limits. */
async function destroyAll({ api, output }: Invocation<Options>, ids: string[]): Promise<Outcome> {
  const outcome: Outcome = { destroyed: [], failures: [] }
  using progress = output.progress('destroying')
  for (const [index, id] of ids.entries()) {
    progress.say(`destroying ${index + 1} of ${ids.length}: ${id}`)
    const destroy = () => api.call('destroySandbox', { params: { id } })
    try {
      outcome.destroyed.push(await waitOut(api, destroy, { note: output.note, say: progress.say }))
    } catch (error) {
      outcome.failures.push({ id, error: describeError(error) })
    }
  }
  return outcome
}

/** Combines failures under the code of the first. */
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
