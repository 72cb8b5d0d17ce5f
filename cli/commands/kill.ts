import { constants } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { addSessionOption, defineCommand } from '../core/command.ts'
import { CliError } from '../core/errors.ts'
import { execOutcomeFields } from '../core/shapes.ts'
import { readExecId } from '../exec/exec-id.ts'
import { describeExit } from '../exec/exit-status.ts'
import { createRemote, type Remote, type Signal } from '../exec/remote.ts'

export const define = defineCommand<{ signal: string }>({
  declare: (command) =>
    addSessionOption(command)
      .usage('[options] EXEC_ID')
      .argument('<exec-id>')
      .option('--signal <name>', 'such as INT, SIGHUP or 9', 'TERM'),
  notes: `
Signals the whole process group, and sends KILL 2 s after TERM. Prints the exit status of the command, or that it is
still running. Exits with code 3 if the command is not found, and with code 5 if it has already ended.
To run the \`kill\` program in a session, use \`sandlot exec kill\`.`,
  examples: ['sandlot kill exec_01kx…', 'sandlot kill --signal INT exec_01kx…'],
  fields: execOutcomeFields,
  handle: async ({ args, options, session, api, output }) => {
    const execId = readExecId(args[0]!)
    const signal = readSignal(options.signal)
    const remote = createRemote(api, await session())
    const ended = await stop(remote, execId, signal)
    output.result(ended, `${execId} ${describeExit(ended)}\n`)
  },
})

/** Converts a signal number or name to a name without the SIG prefix. The service rejects unknown names. */
function readSignal(text: string): Signal {
  const byNumber = Object.entries(constants.signals).find(([, number]) => String(number) === text)?.[0]
  return (byNumber ?? text.toUpperCase()).replace(/^SIG/, '') as Signal
}

/**
 * Sends a signal to a command, and waits up to 10 s for the command to end.
 * @throws {CliError} `exec_finished` with the exit status, if the command had already ended
 */
async function stop(remote: Remote, execId: string, signal: Signal): Promise<ExecOutcome> {
  try {
    const signaled = await remote.signal(execId, signal)
    if (signaled.status !== 'running') return signaled
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'exec_finished') throw error
    const { message, details } = error
    const ended = await remote.get(execId).catch(() => undefined)
    const words = ended ? `${execId} has already ended: ${describeExit(ended)}.` : message
    throw new CliError(error.code, words, { details })
  }
  // The service follows TERM with KILL.
  const maxMs = signal === 'TERM' || signal === 'KILL' ? 10_000 : 1_000
  const until = performance.now() + maxMs
  for (let pauseMs = 25; ; pauseMs *= 2) {
    const ended = await remote.get(execId)
    const leftMs = until - performance.now()
    if (ended.status !== 'running' || leftMs <= 0) return ended
    await sleep(Math.min(pauseMs, leftMs))
  }
}
