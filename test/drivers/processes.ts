/** Runs processes in a sandbox and waits for their effects. */
import type { Readable } from 'node:stream'
import { type Driver, DriverUnavailable, type PodName } from '../../workers/drivers/driver.ts'
import { patient } from '../support/eventually.ts'

export const shell = (script: string): string[] => ['/bin/sh', '-c', script]

export interface RunResult {
  stdout: string
  stderr: string
  code: number
}

/** Exit code that stands for success instead of 0, which a cluster cannot prove (see `Process.ended`). */
const success = 99

/**
 * Runs a process in the workspace until it exits. stdin is one empty line, and ends before the process
 * starts.
 * On a cluster, a later EOF may lose the exit code, and an EOF without data may never arrive (see
 * `Process.stdin`).
 * @throws {Error} if the exit code is unknown
 */
export async function run(driver: Driver, pod: PodName, argv: readonly string[]): Promise<RunResult> {
  const script = `cd; while read -r _; do :; done; "$@"; s=$?; [ "$s" = 0 ] && exit ${success}; exit "$s"`
  const process = await driver.start(pod, [...shell(script), 'sh', ...argv])
  process.stdin.end('\n')
  const [stdout, stderr, end] = await Promise.all([
    collect(process.stdout),
    collect(process.stderr),
    process.ended,
  ])
  if (end.kind === 'lost') throw new Error(`${argv.join(' ')}: lost, ${end.why}`)
  return { stdout: String(stdout), stderr: String(stderr), code: end.code === success ? 0 : end.code }
}

/** Waits until a command succeeds in the pod. */
export const untilReady = (driver: Driver, pod: PodName, signal = AbortSignal.timeout(patient(60_000))) =>
  driver.ready(pod, signal, () =>
    run(driver, pod, ['true']).catch((cause) => {
      throw new DriverUnavailable('not ready yet', { cause })
    }),
  )

export async function collect(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Reads the next line without its line feed. Later bytes stay in the stream. */
export async function firstLine(stream: Readable): Promise<string> {
  let text = Buffer.alloc(0)
  for (;;) {
    const chunk: Buffer | null = stream.read()
    if (chunk) {
      text = Buffer.concat([text, chunk])
      const end = text.indexOf(0x0a)
      if (end >= 0) {
        if (text.length > end + 1) stream.unshift(text.subarray(end + 1))
        return String(text.subarray(0, end))
      }
      continue
    }
    if (stream.readableEnded || stream.destroyed) throw new Error(`the stream ended after: ${text}`)
    await new Promise<void>((resolve) => {
      const done = () => {
        stream.off('readable', done).off('end', done).off('close', done)
        resolve()
      }
      stream.on('readable', done).on('end', done).on('close', done)
    })
  }
}

/** Reads all terminal output until the end, or until a text first appears. */
export function readScreen(stream: Readable) {
  let text = ''
  stream.on('data', (chunk) => {
    text += chunk
  })
  const all = new Promise<string>((resolve) => {
    stream.on('end', () => resolve(text)).on('close', () => resolve(text))
  })
  return {
    all,
    shows: (part: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (text.includes(part)) stop(() => resolve(text))
        }
        const ms = patient(20_000)
        const failFor = (why: string) => () => stop(() => reject(new Error(`${why} and shows: ${text}`)))
        const fail = failFor('the terminal ended')
        const timer = setTimeout(failFor(`after ${ms} ms the terminal has no ${JSON.stringify(part)}`), ms)
        const stop = (tell: () => void) => {
          clearTimeout(timer)
          stream.off('data', look).off('end', fail).off('close', fail)
          tell()
        }
        stream.on('data', look).on('end', fail).on('close', fail)
        look()
      }),
  }
}
