import type { ExecOutcome } from './exec.ts'

export interface OutputOffset {
  stdout: number
  stderr: number
}

type OutputData = { text: string } | { base64: string }

export type ExecEvent = { id: string } & (
  | { event: 'start'; data: { id: string; pid: number | null } }
  | { event: 'stdout' | 'stderr'; data: OutputData }
  | { event: 'gap'; data: { stdout_bytes: number; stderr_bytes: number } }
  | { event: 'exit'; data: ExecOutcome }
)

/** Reason reported for a command that was killed because no client was connected during its grace period. */
export const clientDisconnected = 'its client disconnected'

/** The first byte of a binary WebSocket frame, which identifies the stream of the remaining bytes. */
export const frameStreams = { stdout: 1, stderr: 2 } as const

export const eventIdOf = ({ stdout, stderr }: OutputOffset): string => `${stdout}-${stderr}`

/**
 * Returns the output offset that an event ID contains. A missing or malformed ID stands for the start of the
 * output.
 */
export function offsetOf(eventId: string | undefined): OutputOffset {
  const [, stdout = 0, stderr = 0] = /^(\d+)-(\d+)$/.exec(eventId ?? '') ?? []
  return { stdout: Number(stdout), stderr: Number(stderr) }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function dataOf(bytes: Uint8Array): OutputData {
  try {
    return { text: utf8.decode(bytes) }
  } catch {
    return { base64: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64') }
  }
}

export const bytesOf = (data: OutputData): Buffer =>
  'text' in data ? Buffer.from(data.text) : Buffer.from(data.base64, 'base64')
