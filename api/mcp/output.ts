/** Truncates the answer of a route for a model, and notes what was cut. */
import { toolLimits } from '../../shared/contract/mcp.ts'

export interface CutResult {
  result: Record<string, unknown>
  /** Sentences about what was cut and how to get the rest. */
  notes: string[]
}

const streams = ['stdout', 'stderr']
/** Lists with a `truncated` field. */
const lists = ['entries', 'paths', 'matches', 'skipped_binary']

/** The result still matches the route's schema. */
export function cutToSize(reply: object): CutResult {
  const fitted: CutResult = { result: { ...reply }, notes: [] }
  const { result, notes } = fitted
  if ('next_cursor' in result) cutPage(result, result.data as { id: string }[], notes)
  if (!('truncated' in result)) return fitted
  for (const [name, value] of Object.entries(result)) {
    if (streams.includes(name)) cutMiddle(result, name, value as string, notes)
    else if (name === 'content') cutContent(result, value as string, notes)
    else if (lists.includes(name)) cutList(result, name, value as unknown[], notes)
  }
  if (notes.length > 0) result.truncated = true
  return fitted
}

function cutMiddle(result: CutResult['result'], name: string, text: string, notes: string[]): void {
  const most = toolLimits.outputCharacters
  if (text.length <= most) return
  const [head, tail] = [text.slice(0, most / 2), text.slice(-most / 2)]
  const left = text.length - most
  result[name] = `${head.toWellFormed()}\n[... ${left} characters left out ...]\n${tail.toWellFormed()}`
  notes.push(`${name} was cut in the middle. Write long output to a file, and look at parts of it.`)
}

function cutContent(result: CutResult['result'], text: string, notes: string[]): void {
  const most = toolLimits.contentCharacters
  if (text.length <= most) return
  if (result.encoding === 'base64') {
    // Four characters are three bytes.
    result.content = text.slice(0, most - (most % 4))
    notes.push('content was cut at its end. It is no text: read parts of it with exec.')
    return
  }
  const end = text.lastIndexOf('\n', most - 1) + 1
  result.content = text.slice(0, end || most).toWellFormed()
  notes.push(
    end === 0
      ? 'content was cut within its first line, which is longer than an answer can be: read parts with exec.'
      : `content was cut after ${text.slice(0, end).split('\n').length - 1} lines: read on with start_line.`,
  )
}

function cutPage(result: CutResult['result'], data: { id: string }[], notes: string[]): void {
  const end = Math.max(1, howManyFit(data))
  if (end >= data.length) return
  result.data = data.slice(0, end)
  result.next_cursor = data[end - 1]!.id
  notes.push(`data holds ${end} of ${data.length}: next_cursor, as cursor, leads to the rest.`)
}

function howManyFit(list: unknown[]): number {
  let left: number = toolLimits.listCharacters
  const end = list.findIndex((one) => {
    left -= JSON.stringify(one).length + 1
    return left < 0
  })
  return end < 0 ? list.length : end
}

function cutList(result: CutResult['result'], name: string, list: unknown[], notes: string[]): void {
  const end = howManyFit(list)
  if (end === list.length) return
  result[name] = list.slice(0, end)
  const odd = result[`${name}_base64`]
  if (odd) {
    const kept = Object.entries(odd).filter(([index]) => Number(index) < end)
    result[`${name}_base64`] = Object.fromEntries(kept)
  }
  notes.push(`${name} holds ${end} of ${list.length}. Narrow it down by a path or a pattern.`)
}
