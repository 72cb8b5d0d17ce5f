/** Detects when the client has read stdin meant for the surrounding shell. */
import { fstatSync, readFileSync, statSync } from 'node:fs'
import type { Input } from './input.ts'

const shells = /^((ba|da|a|k|mk|z|fi)?sh|busybox)$/

/**
 * Warns if the client has consumed bytes meant for a `while read` loop or for a script on stdin.
 * @param advice explains how to leave stdin untouched
 */
export function noteSharedStdin({ byteCount }: Input, advice: string, note: (text: string) => void): void {
  if (byteCount === 0 || !isSharedWithShell()) return
  const bytes = byteCount === 1 ? '1 byte' : `${byteCount} bytes`
  note(`sandlot: the command received ${bytes} of stdin that belong to the surrounding shell. ${advice}`)
}

/**
 * True if an ancestor process is a shell with the same stdin. Always false on systems without /proc, such as
 * macOS.
 */
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
