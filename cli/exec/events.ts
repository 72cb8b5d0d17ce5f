/** Server-sent events as this service writes them: `id`, `event` and one line of JSON. */
import type { ExecEnd } from '../../shared/contract/exec.ts'

export type ExecEvent = { id: string } & (
  | { event: 'start'; data: { id: string } }
  | { event: 'stdout' | 'stderr'; data: { text: string } | { base64: string } }
  | { event: 'gap'; data: { stdout_bytes: number; stderr_bytes: number } }
  | { event: 'exit'; data: ExecEnd }
)

/** Reads to the end of the stream; what is cut off there is no event. */
export async function* readEvents(source: AsyncIterable<Uint8Array>): AsyncGenerator<ExecEvent> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of source) {
    text += decoder.decode(chunk, { stream: true })
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const event = parse(block)
      if (event) yield event
    }
  }
}

/** @returns undefined for a comment, which keeps the connection alive */
function parse(block: string): ExecEvent | undefined {
  const fields = new Map<string, string>()
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).replace(/^ /, ''))
  }
  const [id, event, data] = [fields.get('id') ?? '', fields.get('event'), fields.get('data')]
  if (event === undefined || data === undefined) return undefined
  return { id, event, data: JSON.parse(data) } as ExecEvent
}

/** How many bytes of each stream come up to here. */
export interface OutputOffset {
  stdout: number
  stderr: number
}

/** Where an event ends: its id says so. */
export function offsetOf({ id }: { id: string }): OutputOffset {
  const [stdout = 0, stderr = 0] = id.split('-').map(Number)
  return { stdout, stderr }
}

export const idOf = ({ stdout, stderr }: OutputOffset): string => `${stdout}-${stderr}`

export const bytesOf = (data: { text: string } | { base64: string }): Buffer =>
  'text' in data ? Buffer.from(data.text) : Buffer.from(data.base64, 'base64')
