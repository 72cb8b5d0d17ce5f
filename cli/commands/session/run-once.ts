import { setTimeout as sleep } from 'node:timers/promises'
import { shellLine } from '../../../shared/contract/shell-words.ts'
import type { Api, Reply } from '../../core/api.ts'
import type { Invocation } from '../../core/command.ts'
import { CliError, describeError } from '../../core/errors.ts'
import { hasPipedInput } from '../../core/input.ts'
import type { Output } from '../../core/output.ts'
import { onShutdown } from '../../core/shutdown.ts'
import { exitCodeOf, noteExitStatus } from '../../exec/exit-status.ts'
import { Input, noteSharedStdin } from '../../exec/input.ts'
import { print } from '../../exec/print.ts'
import { createRemote } from '../../exec/remote.ts'
import { retrying } from '../../exec/retry.ts'
import { runStreaming } from '../../exec/stream.ts'

export interface Creation {
  /** Creates the session. With --wait, waits while a quota or a rate limit is exceeded. */
  create(): Promise<Reply<'createSandbox'>>
  /** Returns the created session, if any. If the reply was lost, repeats the request, which is idempotent. */
  find(): Promise<Reply<'createSandbox'> | undefined>
}

/**
 * Runs one command in a new session, then always destroys the session. Returns the command's exit code.
 * @throws {CliError} if the command did not run
 */
export async function runOnce(
  { api, output }: Pick<Invocation<object>, 'api' | 'output'>,
  creation: Creation,
  command: string[],
): Promise<number> {
  let destroying: Promise<void> | undefined
  const destroyOnce = () => (destroying ??= destroy(creation, api, output))
  const unregister = onShutdown(destroyOnce)
  try {
    const { id, ready_at } = await creation.create()
    if (ready_at === null) await untilReady(api, id, output)
    const remote = createRemote(api, id)
    const input = hasPipedInput() ? new Input(process.stdin) : undefined
    const ended = await runStreaming({
      remote,
      request: { command },
      input,
      write: output.json ? undefined : print,
      note: output.note,
    })
    if (output.json) output.result({ sandbox_id: id, ...(await remote.get(ended.id)) }, '')
    else noteExitStatus(ended, output.note)
    const advice = 'Use </dev/null to leave stdin untouched, for example in a `while read` loop.'
    if (input) noteSharedStdin(input, advice, output.note)
    return exitCodeOf(ended)
  } finally {
    await destroyOnce()
    unregister()
  }
}

async function untilReady(api: Api, id: string, output: Output): Promise<void> {
  using _ = output.progress('the session is starting')
  for (let pauseMs = 50; ; pauseMs = Math.min(pauseMs * 1.5, 1_000)) {
    const { ready_at, state, destroy_reason, destroy_detail } = await api.call('getSandbox', {
      params: { id },
    })
    if (state === 'destroyed') {
      const reason = [destroy_reason, destroy_detail].filter((part) => part !== null).join(': ')
      throw new CliError('sandbox_start_failed', `The session did not start: ${reason}.`)
    }
    if (ready_at !== null) return
    await sleep(pauseMs)
  }
}

/** Destroys the session. On failure, prints a note instead of changing the exit code. */
async function destroy(creation: Creation, api: Api, output: Output): Promise<void> {
  let id: string | undefined
  try {
    id = (await retrying(creation.find))?.id
    if (id === undefined) return
    await retrying(() => api.call('destroySandbox', { params: { id: id! } }))
  } catch (error) {
    const { code, message } = describeError(error)
    if (code === 'sandbox_destroyed' || code === 'sandbox_start_failed') return
    const session = id ?? 'A session that may have been created'
    const line = shellLine('sandlot', 'session', 'rm', ...(id === undefined ? [] : [id]))
    output.note(`sandlot: ${session} could not be destroyed: ${message}\nDestroy it with: ${line}`)
  }
}
