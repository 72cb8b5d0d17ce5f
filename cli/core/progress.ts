import { oneLine } from './printable.ts'
import { cut } from './table.ts'

export interface Progress extends Disposable {
  show(text: string): void
  /** Erases the progress line until it is next redrawn, so that other output can be printed. */
  clear(): void
}

export const noProgress: Progress = { show() {}, clear() {}, [Symbol.dispose]() {} }

const delayMs = 300
const frameMs = 100
const frames = ['|', '/', '-', '\\']

export function showProgress(first: string): Progress {
  let text = first
  let frame = 0
  let isShown = false
  const clear = () => {
    if (isShown) process.stderr.write('\r\u001b[2K')
    isShown = false
  }
  const draw = () => {
    // A wrapped line could not be erased.
    const line = cut(
      `${frames[frame++ % frames.length]} ${oneLine(text)}`,
      (process.stderr.columns || 80) - 1,
    )
    process.stderr.write(`\r\u001b[2K${line}`)
    isShown = true
  }
  let timer = setTimeout(() => {
    draw()
    timer = setInterval(draw, frameMs)
    timer.unref()
  }, delayMs)
  timer.unref()
  process.once('exit', clear)
  return {
    show(next) {
      text = next
    },
    clear,
    [Symbol.dispose]() {
      // clearTimeout also clears intervals.
      clearTimeout(timer)
      clear()
      process.off('exit', clear)
    },
  }
}

export function startTransfer(progress: Progress, name: string, whole?: number) {
  const started = performance.now()
  const transfer = {
    bytes: 0,
    add({ length }: Uint8Array): void {
      transfer.bytes += length
      const seconds = (performance.now() - started) / 1000
      progress.show(`${name}  ${showTransfer(transfer.bytes, whole, seconds)}`)
    },
  }
  return transfer
}

/** Formats the progress of a transfer, for example as `[######----]  60%  6.0/10.0 MB  3.1 MB/s`. */
export function showTransfer(done: number, whole: number | undefined, seconds: number): string {
  const rate = seconds > 0 ? `  ${megabytes(done / seconds)} MB/s` : ''
  if (whole === undefined || whole === 0) return `${megabytes(done)} MB${rate}`
  const share = Math.min(1, done / whole)
  const bar = '#'.repeat(Math.floor(share * barCells)).padEnd(barCells, '-')
  const percent = `${Math.floor(share * 100)}%`.padStart(4)
  return `[${bar}] ${percent}  ${megabytes(done)}/${megabytes(whole)} MB${rate}`
}

const barCells = 24
const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1)
