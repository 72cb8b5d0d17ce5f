/** Sends data through the client from stdin to stdout, and measures its memory. */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

const mebibyte = 1024 * 1024

/** @param mebibytes amount of input. No two MiB are equal. */
export async function pipeThrough(args: string[], env: Record<string, string>, mebibytes: number) {
  const child = spawn(process.execPath, args, { env, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  const [sent, received] = [tally(), tally()]
  const peaks = { afterTenth: 0, atEnd: 0 }
  const random = randomBytes(mebibyte)
  function* blocks() {
    for (let number = 0; number < mebibytes; number += 1) {
      const block = Buffer.from(random)
      block.writeUInt32BE(number)
      yield sent.add(block)
    }
  }
  const feeding = pipeline(Readable.from(blocks()), child.stdin)
  let read = 0
  for await (const chunk of child.stdout) {
    received.add(chunk)
    const before = read
    read += chunk.length
    if (Math.floor(before / mebibyte) === Math.floor(read / mebibyte)) continue
    // The last sample is taken after the last mebibyte, before stdin is closed.
    peaks.atEnd = peakOf(child.pid!) ?? peaks.atEnd
    if (read < (mebibytes / 10 + 1) * mebibyte) peaks.afterTenth = peaks.atEnd
  }
  await feeding
  const [code] = await ended
  return { sent: sent.sum(), received: received.sum(), peaks, code: code as number | null }
}

function tally() {
  const hash = createHash('sha256')
  let bytes = 0
  return {
    add(chunk: Buffer): Buffer {
      hash.update(chunk)
      bytes += chunk.length
      return chunk
    },
    sum: () => ({ bytes, sha256: hash.digest('hex') }),
  }
}

/** Peak memory of the process so far, in bytes. */
function peakOf(pid: number): number | undefined {
  try {
    const [, kibibytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1024
  } catch {
    return undefined // it has exited
  }
}
