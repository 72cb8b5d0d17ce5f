/** The commands that this worker runs or has run, by id, as long as their sandboxes live. */
import { limits } from '../../shared/contract/limits.ts'
import { within } from '../../shared/platform/patience.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { OneExec } from '../../shared/rpc/calls.ts'
import type { Command, Ending } from './command.ts'
import { notRun, type TakenBack } from './taken-back.ts'

/** Milliseconds that the commands of an ended sandbox can still be asked for. */
const rememberMs = 60_000

export class Commands {
  private readonly byId = new Map<string, Command>()
  private readonly bySandbox = new Map<string, Set<Command>>()
  private readonly takenBack: Pick<TakenBack, 'has'>

  constructor(takenBack: Pick<TakenBack, 'has'>) {
    this.takenBack = takenBack
  }

  add(command: Command): void {
    const { sandboxId } = command.facts
    this.byId.set(command.id, command)
    const siblings = this.bySandbox.get(sandboxId) ?? new Set()
    this.bySandbox.set(sandboxId, siblings.add(command))
  }

  remove(command: Command): void {
    this.byId.delete(command.id)
    this.bySandbox.get(command.facts.sandboxId)?.delete(command)
  }

  find(execId: string, accountId: string): Command | undefined {
    const command = this.byId.get(execId)
    return command?.facts.accountId === accountId ? command : undefined
  }

  /**
   * @throws {Problem} `exec_not_found` when this worker does not know the command, or no longer; `unavailable` when it
   *   was not run, whatever its row may still say
   */
  get({ execId, accountId }: OneExec): Command {
    const command = this.find(execId, accountId)
    if (!command && this.takenBack.has(execId)) throw notRun()
    if (!command) throw new Problem('exec_not_found', 'There is no such command.')
    return command
  }

  of = (sandboxId: string): Command[] => [...(this.bySandbox.get(sandboxId) ?? [])]
  sandboxIds = (): string[] => [...this.bySandbox.keys()]

  /** Called when output was taken. Keeps the output of a sandbox within its bound; the oldest goes first. */
  trim(sandboxId: string): void {
    const all = this.of(sandboxId)
    shareUnread(all)
    let over = all.reduce((sum, { keptBytes }) => sum + keptBytes, 0) - limits.keptBytesOfSandbox
    for (const command of all) {
      if (over <= 0) return
      const before = command.keptBytes
      command.dropOutput(over)
      over -= before - command.keptBytes
    }
  }

  /** Ends the commands of a sandbox that has ended, at once, on every open stream. */
  endSandbox(sandboxId: string, ending: Ending): void {
    for (const command of this.of(sandboxId)) command.finish(ending)
    setTimeout(() => this.forgetSandbox(sandboxId), rememberMs).unref()
  }

  /** Resolves when none runs any more, at the latest after `ms`. */
  async drain(ms: number): Promise<void> {
    const running = [...this.byId.values()].filter(({ isRunning }) => isRunning)
    await within(ms, Promise.all(running.map(({ ended }) => ended)))
  }

  private forgetSandbox(sandboxId: string): void {
    for (const command of this.of(sandboxId)) this.byId.delete(command.id)
    this.bySandbox.delete(sandboxId)
  }
}

/** Bytes that each command may have unread at least, however many are read. */
const leastUnread = 256 * 1024

/** Output that readers have yet to get is not dropped, so the commands that are read share the sandbox's bound. */
function shareUnread(all: Command[]): void {
  let readers = 0
  for (const { log } of all) if (log.isRead) readers++
  const share = Math.max(leastUnread, Math.min(limits.unreadBytes, limits.keptBytesOfSandbox / readers))
  for (const { log } of all) log.limitUnread(share)
}
