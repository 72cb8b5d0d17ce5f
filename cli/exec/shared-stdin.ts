/** Detects that the command was sent input that the shell around this client would have read. */
import { fstatSync, readFileSync, statSync } from 'node:fs'
import type { Input } from './input.ts'

const shells = /^((ba|da|a|k|mk|z|fi)?sh|busybox)$/

/**
 * Reports bytes that a `while read` loop, or a script on stdin, no longer gets. Nothing reports whether a command reads
 * its stdin, so this also appears when a script passes its stdin on deliberately.
 * @param advice how to leave stdin to the shell
 */
export function noteSharedStdin({ byteCount }: Input, advice: string, note: (text: string) => void): void {
  if (byteCount === 0 || !isSharedWithShell()) return
  const bytes = byteCount === 1 ? '1 byte' : `${byteCount} bytes`
  note(`sandlot: the command was sent stdin of the shell that runs this client (${bytes}). ${advice}`)
}

/** Whether a shell among the ancestors has the same stdin. Always false without /proc, as on macOS. */
function isSharedWithShell(): boolean {
  try {
    const own = fstatSync(0)
    for (let pid = process.ppid; pid > 1; ) {
      const { dev, ino } = statSync(`/proc/${pid}/fd/0`)
      if (dev !== own.dev || ino !== own.ino) return false
      const status = readFileSync(`/proc/${pid}/status`, 'utf8')
      if (shells.test(/^Name:\t(.*)$/m.exec(status)?.[1] ?? '')) return true
      pid = Number(/^PPid:\t(\d+)$/m.exec(status)?.[1])
    }
  } catch {
    // An ancestor has ended or belongs to another user.
  }
  return false
}
