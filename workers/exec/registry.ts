/** Stores this worker's commands until a minute after their sandboxes are destroyed. */
import { limits } from '../../shared/contract/limits.ts'
import { withTimeout } from '../../shared/lib/timeout.ts'
import type { MemoryBudget } from '../../shared/platform/memory-budget.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { OneExec } from '../../shared/rpc/calls.ts'
import type { Command, ExitStatus } from './command.ts'
import { notRun, type RefusedExecs } from './refused-execs.ts'

/** How long commands stay in memory after their sandbox is destroyed. */
const rememberMs = 60_000
/** How long a draining worker waits for a client to reconnect and receive the exit status. */
const deliveryMs = 5_000

export class Commands {
  private readonly byId = new Map<string, Command>()
  private readonly bySandbox = new Map<string, Set<Command>>()
  private readonly refusedExecs: Pick<RefusedExecs, 'has'>
  private readonly memoryBudget: MemoryBudget
  private readonly kept = new Map<string, { accountId: string; bytes: number }>()

  constructor(refusedExecs: Pick<RefusedExecs, 'has'>, memoryBudget: MemoryBudget) {
    this.refusedExecs = refusedExecs
    this.memoryBudget = memoryBudget
  }

  add(command: Command): void {
    const { sandboxId } = command.facts
    this.byId.set(command.id, command)
    const siblings = this.bySandbox.get(sandboxId) ?? new Set()
    this.bySandbox.set(sandboxId, siblings.add(command))
  }

  remove(command: Command): void {
    const { sandboxId } = command.facts
    this.byId.delete(command.id)
    const siblings = this.bySandbox.get(sandboxId)
    siblings?.delete(command)
    if (siblings?.size === 0) this.bySandbox.delete(sandboxId)
  }

  find(execId: string, accountId: string): Command | undefined {
    const command = this.byId.get(execId)
    return command?.facts.accountId === accountId ? command : undefined
  }

  /** @throws {Problem} `unavailable` if the command was refused before it ran, otherwise `exec_not_found` */
  get({ execId, accountId }: OneExec): Command {
    const command = this.find(execId, accountId)
    if (!command && this.refusedExecs.has(execId)) throw notRun()
    if (!command) throw new Problem('exec_not_found', 'This command does not exist or is no longer stored.')
    return command
  }

  of = (sandboxId: string): Command[] => [...(this.bySandbox.get(sandboxId) ?? [])]
  sandboxIds = (): string[] => [...this.bySandbox.keys()]

  /** Drops the oldest output until the sandbox and the worker are within their limits for retained output. */
  trim(sandboxId: string): void {
    const all = this.of(sandboxId)
    shareUnread(all)
    this.keepWithin(limits.keptBytesOfSandbox, sandboxId, all)
    const { sums, limits: memoryLimits } = this.memoryBudget
    if (sums.output <= memoryLimits.ofAll) return
    for (const other of this.bySize()) {
      if (sums.output <= memoryLimits.ofAll) return
      const others = this.of(other)
      this.keepWithin(sum(others) - (sums.output - memoryLimits.ofAll), other, others)
    }
  }

  /**
   * Returns sandbox IDs in the order in which their output is dropped: the account with the most output
   * first, and within an account, the sandbox with the most output first.
   */
  private bySize(): string[] {
    const ofAccount = new Map<string, number>()
    for (const { accountId, bytes } of this.kept.values())
      ofAccount.set(accountId, (ofAccount.get(accountId) ?? 0) + bytes)
    const sizeOf = (accountId: string) => ofAccount.get(accountId)!
    return [...this.kept]
      .sort(([, a], [, b]) => sizeOf(b.accountId) - sizeOf(a.accountId) || b.bytes - a.bytes)
      .map(([sandboxId]) => sandboxId)
  }

  /**
   * Drops the oldest output of a sandbox's commands down to `max` bytes, but never output that a reader has
   * yet to receive.
   */
  private keepWithin(max: number, sandboxId: string, all: readonly Command[]): void {
    let kept = sum(all)
    for (const command of all) {
      if (kept <= max) break
      const before = command.keptBytes
      command.dropOutput(kept - max)
      kept -= before - command.keptBytes
    }
    const [first] = all
    if (first) this.countKept(sandboxId, { accountId: first.facts.accountId, bytes: kept })
  }

  private countKept(sandboxId: string, kept?: { accountId: string; bytes: number }): void {
    this.memoryBudget.sums.output += (kept?.bytes ?? 0) - (this.kept.get(sandboxId)?.bytes ?? 0)
    if (kept) this.kept.set(sandboxId, kept)
    else this.kept.delete(sandboxId)
  }

  markDestroyed(sandboxId: string, ending: ExitStatus): void {
    for (const command of this.of(sandboxId)) command.finish(ending)
    setTimeout(() => this.forgetSandbox(sandboxId), rememberMs).unref()
  }

  get pendingCount(): number {
    return this.pending().length
  }

  async drain(ms: number): Promise<void> {
    await withTimeout(ms, Promise.all(this.pending().map((command) => command.waitForDelivery(deliveryMs))))
  }

  private pending = (): Command[] =>
    [...this.byId.values()].filter((command) => command.isPending(deliveryMs))

  private forgetSandbox(sandboxId: string): void {
    for (const command of this.of(sandboxId)) this.byId.delete(command.id)
    this.bySandbox.delete(sandboxId)
    this.countKept(sandboxId)
  }
}

const sum = (all: readonly Command[]): number => all.reduce((bytes, { keptBytes }) => bytes + keptBytes, 0)

/** Unread bytes that each command is always allowed, no matter how many commands have readers. */
const minUnread = 256 * 1024

/**
 * Divides a sandbox's limit for retained output among its commands with readers. Otherwise, unread output,
 * which is never dropped, could exceed the limit.
 */
function shareUnread(all: Command[]): void {
  const readers = all.filter(({ log }) => log.isRead).length
  const share = Math.max(minUnread, Math.min(limits.unreadBytes, limits.keptBytesOfSandbox / readers))
  for (const { log } of all) log.maxUnread = share
}
