import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { bytesOf, type OutputOffset, offsetOf } from '../../shared/contract/exec-events.ts'
import { shellLine } from '../../shared/contract/shell-words.ts'
import { addSessionOption, type CommonOptions, defineCommand, type Invocation } from '../core/command.ts'
import { addStory, CliError } from '../core/errors.ts'
import { execFields } from '../core/shapes.ts'
import { showSeconds } from '../core/times.ts'
import { onlyRunning, readExecId } from '../exec/exec-id.ts'
import { isGone, noteExitStatus } from '../exec/exit-status.ts'
import { readAll } from '../exec/follow.ts'
import { createReplay, exitOnClosedPipe, noteMissing, reconnectNotes } from '../exec/print.ts'
import { createRemote, type Remote } from '../exec/remote.ts'
import { RetryPolicy } from '../exec/retry.ts'

interface Options {
  follow?: boolean
  raw?: boolean
}

export const define = defineCommand<Options>({
  declare: (command) =>
    addSessionOption(command)
      .usage('[options] [EXEC_ID]')
      .argument('[exec-id]', 'the command; by default the only running one')
      .option('-f, --follow', 'follow the output until the command ends')
      .option('--raw', 'print control characters unchanged at a terminal'),
  notes: `
At a terminal, only text and colors are printed; --raw prints all control sequences, such as cursor movement. A pipe or
a file receives every byte. Exits with 0 after printing the output, regardless of the exit status of the command. The
number of bytes that are no longer stored is reported on stderr. --json prints the result so far as one object, or with
-f the final result.`,
  examples: ['sandlot logs exec_01kx…', 'sandlot logs -f exec_01kx… | less'],
  fields: execFields,
  handle: async (invocation) => {
    const { args, options, session, api, output } = invocation
    const typed = args[0] === undefined ? undefined : readExecId(args[0])
    const id = await session()
    const execId = typed ?? (await onlyRunning(api, id))
    const remote = createRemote(api, id)
    const result = await remote.get(execId)
    if (output.json && !options.follow) return output.result(result, '')
    const ended = await printOutput(invocation, remote, result)
    if (output.json) return output.result(await remote.get(execId), '')
    if (ended) noteExitStatus(ended, output.note)
  },
})

/** Prints the command's output. Returns the exit status, or undefined if the command is still running. */
async function printOutput(
  { options, output }: Invocation<Options & CommonOptions>,
  remote: Remote,
  { id, status }: Pick<ExecOutcome, 'id' | 'status'>,
): Promise<ExecOutcome | undefined> {
  exitOnClosedPipe()
  let offset: OutputOffset = { stdout: 0, stderr: 0 }
  const retry = new RetryPolicy()
  const replay = createReplay(options)
  try {
    const end = status === 'running' && !options.follow ? await remote.printedSoFar(id) : undefined
    const open = (lastId?: string) => remote.follow(id, lastId)
    for await (const event of readAll(await open(), open, { retry, ...reconnectNotes(output.note) })) {
      if (event.event === 'exit') return event.data
      if (!output.json && event.event === 'gap') {
        await replay.flush()
        noteMissing(event.data, output.note)
      }
      if (!output.json && (event.event === 'stdout' || event.event === 'stderr'))
        await replay.print(event.event, bytesOf(event.data))
      offset = offsetOf(event.id)
      if (end && offset.stdout >= end.stdout && offset.stderr >= end.stderr) return undefined
    }
  } catch (error) {
    if (!isGone(error)) throw explainLostConnection(error, retry, remote, id)
    const ended = await remote.get(id)
    const stdout_bytes = ended.stdout_bytes - offset.stdout
    const stderr_bytes = ended.stderr_bytes - offset.stderr
    noteMissing({ stdout_bytes, stderr_bytes }, output.note)
    return ended
  } finally {
    await replay.flush()
  }
}

function explainLostConnection(
  error: unknown,
  { disconnectedMs }: RetryPolicy,
  { sessionId }: Remote,
  execId: string,
): unknown {
  if (!(error instanceof CliError) || error.code !== 'network' || disconnectedMs === 0) return error
  return addStory(
    error,
    `The client was disconnected for ${showSeconds(disconnectedMs / 1000)}.`,
    `The command may still be running. To follow it again, use \`${shellLine('sandlot', 'logs', '-f', '-s', sessionId, execId)}\`.`,
  )
}
