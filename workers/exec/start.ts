import { refuseVariables } from '../../shared/allowlist/decide.ts'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import { limits } from '../../shared/contract/limits.ts'
import { recordPid } from '../../shared/data/exec-writes.ts'
import { findRemainingTime } from '../../shared/data/sandbox-pods.ts'
import type { SandboxRow } from '../../shared/data/sandboxes.ts'
import type { Reservation } from '../../shared/platform/memory-budget.ts'
import { Problem, unavailable } from '../../shared/platform/problem.ts'
import type { StartExec } from '../../shared/rpc/calls.ts'
import type { Wire } from '../rpc/call.ts'
import { ExecElsewhere } from '../rpc/problem.ts'
import {
  type EnteredSandbox,
  enter,
  environmentOf,
  exhausted,
  giveBackSlot,
  openSlotIn,
} from '../sandbox/enter.ts'
import { type Secrets, secretsFor } from '../secrets/index.ts'
import { buildPatterns, type SecretPatterns } from '../secrets/patterns.ts'
import type { ShellCommand } from '../shell/script.ts'
import type { Slot } from '../shell/slot.ts'
import { Command, type CommandFacts, withoutExitCode } from './command.ts'
import type { ExecContext } from './context.ts'
import { describeExit, reportExit } from './describe-exit.ts'
import { type ExistingExec, recordStart } from './rows.ts'
import { type Input, RequestStdin, runInSlot, runInTerminal } from './run.ts'

type CallWire = Pick<Wire, 'isAwaited' | 'held'>

/**
 * Starts a command, or returns the existing one with the same Idempotency-Key. A command that was reported as
 * lost is never started.
 * @throws {Problem} if the command was not started
 * @throws {ExecElsewhere} if another worker runs the command
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

/** @param memory reservation for the search structure (automaton) that finds secrets in the output */
async function startInside(
  worker: ExecContext,
  args: StartExec,
  { sandbox, leftMs, clock }: EnteredSandbox,
  memory: Reservation,
  wire: CallWire,
): Promise<Command> {
  const opening = secretsFor(worker, sandbox)
  opening.catch(() => {})
  if (args.isListed) assertVariablesAllowed(environmentOf(worker, sandbox), await opening)
  const slot = args.request.tty ? undefined : await openSlotIn(worker, sandbox)
  // The row is inserted last, so that little can fail between the insert and the start of the command.
  const prepare = async () => {
    const values = await opening
    const patterns = args.request.reveal ? undefined : await buildPatterns(values)
    if (patterns) memory.add(patterns.automaton.bytes)
    return { values, patterns, existing: await recordStart(worker, args, { pid: slot?.pid ?? null, clock }) }
  }
  const preparing = prepare()
  const { existing, ...secrets } = await (slot?.orClose(preparing) ?? preparing)
  if (existing) {
    if (slot) worker.slots.giveBack(sandbox.id, slot)
    return findExisting(worker, args, existing)
  }
  const input = takeInput(args, wire.held)
  const command = makeCommand(worker, factsOf(args), args.requestId)
  worker.commands.add(command)
  worker.reach('start: the row exists, the command does not run')
  await run(worker, { args, sandbox, command, slot, ...secrets, input, isAwaited: wire.isAwaited })
  stopAtTimeout(worker, command, { timeoutAt: performance.now() + timeoutOf(args), leftMs })
  return command
}

/** Creates a command. The callback, which stores its exit status, must not keep the request in memory. */
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
  // A background command with a grace period needs a client, like a foreground command.
  needsClient: mode !== 'background' || (!request.tty && request.grace_ms !== undefined),
  outputEncoding: request.output_encoding ?? 'utf-8',
})

/** Moves stdin out of the request, so that the request does not keep the bytes in memory. */
function takeInput(args: StartExec, held: Reservation): Input {
  const { request } = args
  const { stdin, stdin_base64, background } = request
  delete request.stdin
  delete request.stdin_base64
  const bytes = stdin_base64 === undefined ? Buffer.from(stdin ?? '') : Buffer.from(stdin_base64, 'base64')
  return { stdin: bytes.length > 0 ? new RequestStdin(held, bytes) : undefined, background }
}

interface Start extends Pick<Wire, 'isAwaited'> {
  args: StartExec
  sandbox: SandboxRow
  command: Command
  /** The slot opened for the command, or undefined if the command runs in a terminal. */
  slot: Slot | undefined
  values: Secrets
  patterns: SecretPatterns | undefined
  input: Input
}

/**
 * Runs the command. If it does not start, removes the command and deletes its row.
 * @throws {Problem} if the command did not start
 */
async function run(
  worker: ExecContext,
  { args, sandbox, command, values, patterns, input, isAwaited, ...recorded }: Start,
): Promise<void> {
  let { slot } = recorded
  try {
    if (!args.request.reveal) command.redactWith(patterns)
    const shellCommand = shellCommandOf(worker, sandbox, args.request, values, input)
    // A slot that has closed in the meantime did not run the command, so another slot may run it.
    if (slot?.isClosed) {
      slot = await openSlotIn(worker, sandbox)
      await slot.orClose(recordPid(worker.db, command.id, slot.pid))
    }
    const assertAwaited = async () => {
      if (!(await isAwaited())) throw unavailable('The client has disconnected. The command was not run.')
    }
    await assertAwaited()
    const { rows = 24, columns = 80 } = args.request
    const { processes, ended } = slot
      ? await awaitStart(runInSlot(worker, command, slot, shellCommand, input))
      : await runInTerminal(worker, sandbox, command, shellCommand, {
          ...{ stdin: input.stdin, size: { rows, columns } },
          assertAwaited,
        })
    worker.reach('start: the command runs, no client has been notified')
    void ended.then(async (end) => {
      const isCut = end.kind === 'lost' || end.isCut
      command.finish(await describeExit(worker, command, end, processes()), isCut)
    })
    const used = slot
    if (!used) return
    void command.ended.then(() => {
      if (command.exitedUnsignaled) void giveBackSlot(worker, command.facts.sandboxId, used)
      else used.closeSoon()
    })
  } catch (error) {
    // A client that is already attached receives `lost`, and may retry the command, which has not run.
    slot?.close()
    input.stdin?.free()
    worker.commands.remove(command)
    await worker.refusedExecs.deleteRow(command.id)
    command.finish(withoutExitCode('lost', 'it could not be started'))
    throw error
  }
}

async function awaitStart<T extends ReturnType<typeof runInSlot>>(running: T): Promise<T> {
  const end = await Promise.race([running.began, running.ended])
  if (end?.kind === 'lost' && end.usedUp) throw exhausted(end.usedUp)
  return running
}

const timeoutOf = ({ request, mode }: StartExec): number =>
  request.timeout_ms ?? (mode === 'json' ? limits.execTimeoutMs : Number.POSITIVE_INFINITY)

/** Delay before retrying to read the sandbox's row. */
const rereadMs = 1_000

/**
 * Stops a command when it times out or its sandbox expires. On expiry, first reads the sandbox's row again,
 * because the sandbox's lifetime may have been extended.
 */
function stopAtTimeout(
  worker: ExecContext,
  command: Command,
  { timeoutAt, leftMs }: { timeoutAt: number; leftMs: number },
): void {
  const timeoutMs = timeoutAt - performance.now()
  const stopIfExpired = async () => {
    const { sandboxId } = command.facts
    const found = await findRemainingTime(worker.db, sandboxId).catch(() => ({ left_ms: rereadMs }))
    if (!command.isRunning) return
    if (found && found.left_ms > 0) stopAtTimeout(worker, command, { timeoutAt, leftMs: found.left_ms })
    else await command.stop(withoutExitCode('killed', 'expired'))
  }
  const stop = async () =>
    timeoutMs < leftMs ? await command.stop(withoutExitCode('timed_out', null)) : await stopIfExpired()
  const timer = setTimeout(() => void stop(), Math.min(timeoutMs, leftMs))
  void command.ended.then(() => clearTimeout(timer))
}

function findExisting(worker: ExecContext, { accountId }: StartExec, existing: ExistingExec): Command {
  if (!existing.isSameRequest) {
    throw new Problem(
      'idempotency_conflict',
      'This Idempotency-Key was already used with a different command. Use a new key for each command.',
    )
  }
  const command = worker.commands.find(existing.id, accountId)
  if (!command) throw new ExecElsewhere(existing)
  return command
}

/**
 * Rejects stored variables that could bypass the account's command allowlist. The API cannot check them,
 * because only workers can decrypt them.
 * @throws {Problem} `command_not_allowed`
 */
function assertVariablesAllowed(env: Record<string, string>, secrets: Secrets): void {
  const refused = refuseVariables('sandbox', env) ?? refuseVariables('secret', secrets)
  if (!refused) return
  const { reason, variable } = refused
  throw new Problem('command_not_allowed', reason, { members: { variable } })
}

const shellCommandOf = (
  worker: ExecContext,
  sandbox: SandboxRow,
  request: ExecRequest,
  secrets: Secrets,
  { stdin, background }: Input,
): ShellCommand => ({
  argv: typeof request.command === 'string' ? ['/bin/sh', '-c', '--', request.command] : request.command,
  cwd: request.cwd,
  env: { ...secrets, ...environmentOf(worker, sandbox), ...request.env },
  noStdin: !stdin && !background,
})
