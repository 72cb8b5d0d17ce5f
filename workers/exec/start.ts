/** Starts a client's command in its sandbox and follows it to its end. */
import { constants } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { refuseVariables } from '../../shared/allowlist/decide.ts'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import { limits } from '../../shared/contract/limits.ts'
import { findSandbox, type SandboxRow } from '../../shared/data/sandboxes.ts'
import { Problem, unavailable } from '../../shared/platform/problem.ts'
import { execElsewhere, type StartExec } from '../../shared/rpc/calls.ts'
import type { WorkerContext } from '../context.ts'
import type { IsAwaited } from '../sandbox/call.ts'
import { enter, environmentOf, type Inside, openSlotIn, podOf } from '../sandbox/enter.ts'
import { type Secrets, secretsFor } from '../secrets/index.ts'
import { endGroup, signalGroup } from '../shell/run.ts'
import type { Command as ShellCommand } from '../shell/script.ts'
import { type CommandEnd, type Slot, within } from '../shell/slot.ts'
import { type Body, Command, type End, type Ending, unknownEnd } from './command.ts'
import { endLeftovers } from './orphans.ts'
import { forgetStart, type KnownCommand, recordPid, recordStart } from './rows.ts'
import { runInTerminal } from './terminal.ts'

/** This Idempotency-Key's command is another worker's: no answer for a client. */
export class ExecElsewhere extends Error {
  readonly code = execElsewhere
  readonly known: KnownCommand

  constructor(known: KnownCommand) {
    super('this command is another worker’s')
    this.known = known
  }
}

/**
 * Starts it, or finds the one that runs under the same Idempotency-Key. Once somebody was told that it is lost it is
 * not started: whoever tells that hangs up first, and writes it into the row, or in its place.
 * @throws {Problem} when it was not started, {@link ExecElsewhere} when another worker has it
 */
export async function startCommand(
  worker: WorkerContext,
  args: StartExec,
  isAwaited: IsAwaited,
): Promise<Command> {
  const inside = await enter(worker, args)
  const opening = secretsFor(worker, inside.sandbox)
  const letGo = () => {
    opening.then(({ release }) => release()).catch(() => {})
  }
  try {
    const command = await startInside(worker, args, inside, opening, isAwaited)
    void command.ended.then(letGo)
    return command
  } catch (error) {
    letGo()
    throw error
  }
}

/** @param opening asked for already, as it takes its time */
async function startInside(
  worker: WorkerContext,
  args: StartExec,
  { sandbox, leftMs }: Inside,
  opening: ReturnType<typeof secretsFor>,
  isAwaited: IsAwaited,
): Promise<Command> {
  opening.catch(() => {})
  if (args.isListed) mustNotSteer(environmentOf(worker, sandbox), (await opening).value.values)
  let slot = args.request.tty ? undefined : await openSlotIn(worker, sandbox)
  // The row is the last that is waited for: between it and the command there is no time in which that could be lost.
  const prepare = async () => {
    const { values, sought } = (await opening).value
    const blanked = args.request.reveal ? undefined : await sought()
    return { values, blanked, known: await recordStart(worker, args, slot?.pid ?? null) }
  }
  const { values, blanked, known } = await prepare().catch((error) => {
    slot?.close()
    throw error
  })
  if (known) {
    slot?.close()
    return findKnown(worker, args, known)
  }

  const { request, execId, sandboxId, accountId, requestId, mode } = args
  const command = new Command(
    {
      id: execId,
      sandboxId,
      accountId,
      request,
      needsClient: mode !== 'background' || isToBeFollowed(request),
      startedAt: new Date(),
    },
    (ended, end) => tellEnd(worker, requestId, ended, end),
  )
  worker.commands.add(command)
  worker.pace.see(accountId)
  try {
    if (!request.reveal) command.redactWith(blanked)
    const shellCommand = shellCommandOf(worker, sandbox, args, values)
    // One that ended since it was taken was given nothing, so this command runs in another one.
    if (slot?.isClosed) slot = await replaceSlot(worker, sandbox, execId)
    const mustBeAwaited = async () => {
      if (!(await isAwaited())) throw unavailable('Nobody waits for this command any more. It was not run.')
    }
    await mustBeAwaited()
    const { pid, ended } = slot
      ? runInSlot(worker, sandbox, command, slot, shellCommand)
      : await runInTerminal(worker, sandbox, command, shellCommand, mustBeAwaited)
    void ended.then(async (end) => {
      command.finish(await describeEnd(worker, command, end))
      if (end.kind === 'lost') await endLeftovers(worker, podOf(sandbox), pid)
    })
  } catch (error) {
    // Nothing has run; whoever attached meanwhile is told that it never did, and may try again.
    slot?.close()
    worker.commands.remove(command)
    await forgetStart(worker.db, execId).finally(() =>
      command.finish(unknownEnd('lost', 'it could not be started')),
    )
    throw error
  }
  const timeoutMs = request.timeout_ms ?? (mode === 'json' ? limits.execTimeoutMs : leftMs)
  // At its cap it is the sandbox that ends, whoever notices first.
  const cause = timeoutMs < leftMs ? unknownEnd('timed_out', null) : unknownEnd('killed', 'expired')
  const timer = setTimeout(() => void command.stop(cause), Math.min(timeoutMs, leftMs))
  void command.ended.then(() => clearTimeout(timer))
  return command
}

/** In the background, and yet not to outlive its client: one that is fed while it is followed. */
const isToBeFollowed = ({ tty, grace_ms }: ExecRequest): boolean => !tty && grace_ms !== undefined

function findKnown(worker: WorkerContext, { accountId }: StartExec, known: KnownCommand): Command {
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

/** What was kept before the list was set is found here, where it is opened. */
function mustNotSteer(env: Record<string, string>, secrets: Secrets): void {
  const refused = refuseVariables('sandbox', env) ?? refuseVariables('secret', secrets)
  if (!refused) return
  const { reason, variable } = refused
  throw new Problem('command_not_allowed', reason, { members: { variable } })
}

async function replaceSlot(worker: WorkerContext, sandbox: SandboxRow, execId: string): Promise<Slot> {
  const slot = await openSlotIn(worker, sandbox)
  await recordPid(worker.db, execId, slot.pid).catch((error) => {
    slot.close()
    throw error
  })
  return slot
}

const shellCommandOf = (
  worker: WorkerContext,
  sandbox: SandboxRow,
  { request }: StartExec,
  secrets: Secrets,
): ShellCommand => ({
  argv: typeof request.command === 'string' ? ['/bin/sh', '-c', request.command] : request.command,
  cwd: request.cwd,
  env: { ...secrets, ...environmentOf(worker, sandbox), ...request.env },
  noStdin: !request.stdin && !request.background,
})

function runInSlot(
  worker: WorkerContext,
  sandbox: SandboxRow,
  command: Command,
  slot: Slot,
  shellCommand: ShellCommand,
): { pid: number; ended: Promise<CommandEnd> } {
  const { stdin, background } = command.facts.request
  const ended: Promise<CommandEnd> = slot.run(shellCommand, {
    stdin(writable) {
      command.begin(bodyOf(worker, sandbox, slot.pid, ended, slot), writable)
      // A background command without any is fed by later requests.
      if (stdin === undefined && background) return
      // One that ends before it has read all of it is no failure.
      command.stdin.takeBytes(Buffer.from(stdin ?? ''), 0, !background).catch(() => {})
    },
    onStdout: (chunk) => takeOutput(worker, command, 'stdout', chunk),
    onStderr: (chunk) => takeOutput(worker, command, 'stderr', chunk),
  })
  return { pid: slot.pid, ended }
}

export async function takeOutput(
  worker: WorkerContext,
  command: Command,
  stream: 'stdout' | 'stderr',
  chunk: Buffer,
): Promise<void> {
  const taken = command.take(stream, chunk)
  worker.commands.trim(command.facts.sandboxId)
  await taken
  const { accountId } = command.facts
  const waitMs = worker.pace.spend(accountId, chunk.length, command.log.isRead)
  if (waitMs > 0) await sleep(waitMs)
}

/** How long a killed command has to tell its end, and its last output. */
const killedMs = 2_000

/** What signals reach, through another shell in the same pod. */
export function bodyOf(
  worker: WorkerContext,
  sandbox: SandboxRow,
  pid: number,
  ended: Promise<unknown>,
  closeable: { close(): void },
): Body {
  const pod = podOf(sandbox)
  return {
    async signal(name) {
      const isDone = await signalGroup(worker.driver, pod, pid, name)
      if (!isDone || name !== 'KILL') return
      // The end of one with much of its stdin unread is not reported (drivers/kubernetes/exec.ts).
      void within(killedMs, ended).then(() => closeable.close())
    },
    async end() {
      await endGroup(worker.driver, pod, pid, ended)
      closeable.close()
    },
  }
}

/** How long after its processes a pod's death may be told. */
const deathMs = 3_000

async function describeEnd(worker: WorkerContext, command: Command, end: CommandEnd): Promise<Ending> {
  const { sandboxId } = command.facts
  // A sandbox that ends takes its commands with it; whatever status they left is no news of theirs.
  // Without Postgres, what they left is all there is to know.
  const look = () => findSandbox(worker.db, sandboxId).catch(() => undefined)
  let sandbox = end.kind === 'lost' || end.code > 128 ? await look() : undefined
  if (end.kind === 'exited' && end.withShell && !command.isBeingEnded && !sandbox?.destroyed_at) {
    await worker.changes.next(sandboxId, deathMs)
    sandbox = await look()
  }
  if (sandbox?.destroyed_at) return unknownEnd('killed', sandbox.destroy_reason ?? null)
  if (end.kind === 'lost') return unknownEnd('lost', end.why)
  const signal = signalOf(end.code)
  const reason = end.isCut ? 'the end of its stderr did not come: there may be more of it' : null
  return { status: signal ? 'signaled' : 'exited', exit_code: end.code, signal, reason }
}

/**
 * A shell reports the death of its command by signal n as 128 + n, and cannot tell it from an exit
 * with that status: so every status that could be one is taken for one.
 */
function signalOf(code: number): string | null {
  const found = Object.entries(constants.signals).find(([, value]) => value === code - 128)
  return found?.[0] ?? null
}

/** @returns another ending, where somebody wrote one down who took this worker for lost */
function tellEnd(
  worker: WorkerContext,
  requestId: string,
  command: Command,
  end: End,
): Promise<Ending | undefined> {
  worker.metrics.execs.observe({ status: end.status }, end.duration_ms / 1000)
  worker.log.info(
    {
      exec_id: command.id,
      request_id: requestId,
      sandbox_id: command.facts.sandboxId,
      account_id: command.facts.accountId,
      status: end.status,
      ms: Math.round(end.duration_ms),
    },
    'a command ended',
  )
  return worker.ends.write(end)
}
