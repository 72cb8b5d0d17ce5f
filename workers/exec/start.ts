/** Starts a client's command in its sandbox and follows it. */

import { refuseVariables } from '../../shared/allowlist/decide.ts'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import { limits } from '../../shared/contract/limits.ts'
import { recordPid } from '../../shared/data/exec-writes.ts'
import type { SandboxRow } from '../../shared/data/sandboxes.ts'
import type { Reservation } from '../../shared/platform/memory-budget.ts'
import { Problem, unavailable } from '../../shared/platform/problem.ts'
import type { StartExec } from '../../shared/rpc/calls.ts'
import type { Wire } from '../rpc/call.ts'
import { ExecElsewhere } from '../rpc/problem.ts'
import { type EnteredSandbox, enter, environmentOf, exhausted, openSlotIn } from '../sandbox/enter.ts'
import { type Secrets, secretsFor } from '../secrets/index.ts'
import { buildPatterns, type SecretPatterns } from '../secrets/patterns.ts'
import type { ShellCommand } from '../shell/script.ts'
import type { Slot } from '../shell/slot.ts'
import { Command, type CommandFacts, withoutExitCode } from './command.ts'
import type { ExecContext } from './context.ts'
import { describeExit, reportExit } from './describe-exit.ts'
import { HeldText } from './held-text.ts'
import { type ExistingExec, recordStart } from './rows.ts'
import { type Input, runInSlot } from './run.ts'
import { runInTerminal } from './terminal.ts'

type CallWire = Pick<Wire, 'isAwaited' | 'held'>

/**
 * Starts a command, or finds the one that runs under the same Idempotency-Key. A command that was reported
 * to a client as lost is not started: the API writes that into the row first, and hangs up.
 * @throws {Problem} when it was not started
 * @throws {ExecElsewhere} when another worker has it
 */
export async function startCommand(worker: ExecContext, args: StartExec, wire: CallWire): Promise<Command> {
  const inside = await enter(worker, args)
  const memory = worker.memoryBudget.open(args.accountId, 'requests')
  try {
    const command = await startInside(worker, args, inside, memory, wire)
    void command.ended.then(() => memory.free())
    return command
  } catch (error) {
    memory.free()
    throw error
  }
}

/** @param memory counts what finds the secrets in the output */
async function startInside(
  worker: ExecContext,
  args: StartExec,
  { sandbox, leftMs, clock }: EnteredSandbox,
  memory: Reservation,
  wire: CallWire,
): Promise<Command> {
  // Opened first, because that takes time.
  const opening = secretsFor(worker, sandbox)
  opening.catch(() => {})
  if (args.isListed) mustNotSteer(environmentOf(worker, sandbox), await opening)
  const slot = args.request.tty ? undefined : await openSlotIn(worker, sandbox)
  // Writing the row is the last thing that is waited for, so the command cannot get lost between it and its start.
  const prepare = async () => {
    const values = await opening
    const blanked = args.request.reveal ? undefined : await buildPatterns(values)
    if (blanked) memory.add(blanked.automaton.bytes)
    return { values, blanked, known: await recordStart(worker, args, { pid: slot?.pid ?? null, clock }) }
  }
  const preparing = prepare()
  const { known, ...secrets } = await (slot?.orClose(preparing) ?? preparing)
  if (known) {
    slot?.close()
    return findUnderKey(worker, args, known)
  }
  const input = takeInput(args, wire.held)
  const command = makeCommand(worker, factsOf(args), args.requestId)
  worker.commands.add(command)
  worker.reach('start: the row exists, the command does not run')
  await run(worker, { args, sandbox, command, taken: slot, ...secrets, input, isAwaited: wire.isAwaited })
  endInTime(command, args, leftMs)
  return command
}

/** Its closures live as long as the command, so nothing of the request is in their scope. */
const makeCommand = (worker: ExecContext, facts: CommandFacts, requestId: string) =>
  new Command(facts, async (ended, end) => {
    worker.reach('end: the command has ended, its exit status is not recorded')
    const other = await reportExit(worker, requestId, ended, end)
    worker.reach('end: the row has the exit status, no client has been notified')
    return other
  })

const factsOf = ({ request, execId: id, sandboxId, accountId, mode }: StartExec): CommandFacts => ({
  ...{ id, sandboxId, accountId, startedAt: new Date() },
  graceMs: request.grace_ms ?? limits.graceMs.default,
  needsClient: mode !== 'background' || isToBeFollowed(request),
})

/** Takes stdin out of the request: it goes once it is written, and the rest of the request once the call is answered. */
function takeInput(args: StartExec, held: Reservation): Input {
  const { request } = args
  const { stdin, background } = request
  delete request.stdin
  return { stdin: stdin?.length ? new HeldText(held, stdin) : undefined, background }
}

interface Start extends Pick<Wire, 'isAwaited'> {
  args: StartExec
  sandbox: SandboxRow
  command: Command
  /** The slot that it was recorded with; none for a terminal. */
  taken: Slot | undefined
  values: Secrets
  blanked: SecretPatterns | undefined
  input: Input
}

/** @throws {Problem} when it did not start: then neither the command is left nor, once PostgreSQL answers, its row */
async function run(
  worker: ExecContext,
  { args, sandbox, command, taken, values, blanked, input, isAwaited }: Start,
): Promise<void> {
  let slot = taken
  try {
    if (!args.request.reveal) command.redactWith(blanked)
    const shellCommand = shellCommandOf(worker, sandbox, args, {
      secrets: values,
      hasStdin: input.stdin !== undefined,
    })
    // A slot that ended since it was taken has run nothing, so the command runs in another one.
    if (slot?.isClosed) slot = await replaceSlot(worker, sandbox, command.id)
    const mustBeAwaited = async () => {
      if (!(await isAwaited())) throw unavailable('Nobody waits for this command any more. It was not run.')
    }
    await mustBeAwaited()
    const { processes, ended } = slot
      ? await awaitStart(runInSlot(worker, command, slot, shellCommand, input))
      : await runInTerminal(worker, sandbox, command, shellCommand, {
          ...{ stdin: input.stdin, size: sizeOf(args.request) },
          mustBeAwaited,
        })
    worker.reach('start: the command runs, no client has been notified')
    void ended.then(async (end) => {
      const isCut = end.kind === 'lost' || end.isCut
      command.finish(await describeExit(worker, command, end, processes()), isCut)
    })
  } catch (error) {
    // Nothing has run. A client that has already attached gets `lost`, and may try again.
    slot?.close()
    input.stdin?.free()
    worker.commands.remove(command)
    await worker.takenBack.take(command.id)
    command.finish(withoutExitCode('lost', 'it could not be started'))
    throw error
  }
}

/** Resolves when the command runs, or has ended. @throws {Problem} the sandbox had no room for it */
async function awaitStart<T extends ReturnType<typeof runInSlot>>(running: T): Promise<T> {
  const end = await Promise.race([running.began, running.ended])
  if (end?.kind === 'lost' && end.usedUp) throw exhausted(end.usedUp)
  return running
}

const sizeOf = ({ rows = 24, columns = 80 }: ExecRequest) => ({ rows, columns })

function endInTime(command: Command, { request, mode }: StartExec, leftMs: number): void {
  const timeoutMs = request.timeout_ms ?? (mode === 'json' ? limits.execTimeoutMs : leftMs)
  // At its TTL the sandbox ends, even if the timer of the command fires first.
  const cause = timeoutMs < leftMs ? withoutExitCode('timed_out', null) : withoutExitCode('killed', 'expired')
  const timer = setTimeout(() => void command.stop(cause), Math.min(timeoutMs, leftMs))
  void command.ended.then(() => clearTimeout(timer))
}

/** Whether a background command ends with its client: it has a grace, so it is fed while it is followed. */
const isToBeFollowed = ({ tty, grace_ms }: ExecRequest): boolean => !tty && grace_ms !== undefined

function findUnderKey(worker: ExecContext, { accountId }: StartExec, known: ExistingExec): Command {
  if (!known.isSameRequest) {
    throw new Problem(
      'idempotency_conflict',
      'This Idempotency-Key was used with another command. Use a new key for a new command.',
    )
  }
  const command = worker.commands.find(known.id, accountId)
  if (!command) throw new ExecElsewhere(known)
  return command
}

/** Refuses variables that were stored before the allowlist was set. Only here are they opened. */
function mustNotSteer(env: Record<string, string>, secrets: Secrets): void {
  const refused = refuseVariables('sandbox', env) ?? refuseVariables('secret', secrets)
  if (!refused) return
  const { reason, variable } = refused
  throw new Problem('command_not_allowed', reason, { members: { variable } })
}

async function replaceSlot(worker: ExecContext, sandbox: SandboxRow, execId: string): Promise<Slot> {
  const slot = await openSlotIn(worker, sandbox)
  await slot.orClose(recordPid(worker.db, execId, slot.pid))
  return slot
}

const shellCommandOf = (
  worker: ExecContext,
  sandbox: SandboxRow,
  { request }: StartExec,
  { secrets, hasStdin }: { secrets: Secrets; hasStdin: boolean },
): ShellCommand => ({
  argv: typeof request.command === 'string' ? ['/bin/sh', '-c', '--', request.command] : request.command,
  cwd: request.cwd,
  env: { ...secrets, ...environmentOf(worker, sandbox), ...request.env },
  noStdin: !hasStdin && !request.background,
})
