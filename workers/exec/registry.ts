/** The commands that this worker runs or has run, by id, as long as their sandboxes live. */
import { limits } from '../../shared/contract/limits.ts'
import { within } from '../../shared/platform/patience.ts'
import type { Command, Ending } from './command.ts'

/** Milliseconds that the commands of an ended sandbox can still be asked for. */
const rememberMs = 60_000

export interface Commands {
  add(command: Command): void
  remove(command: Command): void
  find(execId: string, accountId: string): Command | undefined
  of(sandboxId: string): Command[]
  sandboxIds(): string[]
  /** Called when output was taken. Keeps the output of a sandbox within its bound; the oldest goes first. */
  trim(sandboxId: string): void
  /** Ends the commands of a sandbox that has ended, at once, on every open stream. */
  endSandbox(sandboxId: string, ending: Ending): void
  /** Resolves when none runs any more, at the latest after `ms`. */
  drain(ms: number): Promise<void>
}

export function makeCommands(): Commands {
  const byId = new Map<string, Command>()
  const bySandbox = new Map<string, Set<Command>>()

  const forgetSandbox = (sandboxId: string) => {
    for (const command of bySandbox.get(sandboxId) ?? []) byId.delete(command.id)
    bySandbox.delete(sandboxId)
  }
  const commands: Commands = {
    add(command) {
      const { sandboxId } = command.facts
      byId.set(command.id, command)
      const siblings = bySandbox.get(sandboxId) ?? new Set()
      bySandbox.set(sandboxId, siblings.add(command))
    },
    remove(command) {
      byId.delete(command.id)
      bySandbox.get(command.facts.sandboxId)?.delete(command)
    },
    find(execId, accountId) {
      const command = byId.get(execId)
      return command?.facts.accountId === accountId ? command : undefined
    },
    of: (sandboxId) => [...(bySandbox.get(sandboxId) ?? [])],
    sandboxIds: () => [...bySandbox.keys()],
    trim(sandboxId) {
      const all = commands.of(sandboxId)
      shareUnread(all)
      let over = all.reduce((sum, { keptBytes }) => sum + keptBytes, 0) - limits.keptBytesOfSandbox
      for (const command of all) {
        if (over <= 0) return
        const before = command.keptBytes
        command.dropOutput(over)
        over -= before - command.keptBytes
      }
    },
    endSandbox(sandboxId, ending) {
      for (const command of commands.of(sandboxId)) command.finish(ending)
      setTimeout(forgetSandbox, rememberMs, sandboxId).unref()
    },
    async drain(ms) {
      const running = [...byId.values()].filter(({ isRunning }) => isRunning)
      await within(ms, Promise.all(running.map(({ ended }) => ended)))
    },
  }
  return commands
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
