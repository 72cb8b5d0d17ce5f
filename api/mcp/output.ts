/** Truncates a route's response for a language model. */
import { toolLimits } from '../../shared/contract/mcp.ts'

export interface CutResult {
  result: Record<string, unknown>
  notes: string[]
}

const streams = ['stdout', 'stderr']
const lists = ['entries', 'paths', 'matches', 'skipped_binary']

/** Truncates the long fields of a response. The result still matches the route's schema. */
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
  const max = toolLimits.outputCharacters
  if (text.length <= max) return
  const [head, tail] = [text.slice(0, max / 2), text.slice(-max / 2)]
  const left = text.length - max
  result[name] = `${head.toWellFormed()}\n[... ${left} characters omitted ...]\n${tail.toWellFormed()}`
  notes.push(
    `${name} was truncated in the middle. Write long output to a file, then read the file in sections.`,
  )
}

function cutContent(result: CutResult['result'], text: string, notes: string[]): void {
  const max = toolLimits.contentCharacters
  if (text.length <= max) return
  if (result.encoding === 'base64') {
    // Four characters of base64 encode three bytes.
    result.content = text.slice(0, max - (max % 4))
    notes.push('content was truncated and is not text. Read the rest of the file with exec.')
    return
  }
  const end = text.lastIndexOf('\n', max - 1) + 1
  result.content = text.slice(0, end || max).toWellFormed()
  notes.push(
    end === 0
      ? 'content was truncated within its first line, which is too long for a result. Read the line with exec.'
      : `content was truncated after ${text.slice(0, end).split('\n').length - 1} lines. Continue with start_line.`,
  )
}

function cutPage(result: CutResult['result'], data: { id: string }[], notes: string[]): void {
  const end = Math.max(1, countFitting(data))
  if (end >= data.length) return
  result.data = data.slice(0, end)
  result.next_cursor = data[end - 1]!.id
  notes.push(
    `data contains ${end} of ${data.length} items. Call again with cursor set to next_cursor to get the rest.`,
  )
}

function countFitting(list: unknown[]): number {
  let left: number = toolLimits.listCharacters
  const end = list.findIndex((one) => {
    left -= JSON.stringify(one).length + 1
    return left < 0
  })
  return end < 0 ? list.length : end
}

function cutList(result: CutResult['result'], name: string, list: unknown[], notes: string[]): void {
  const end = countFitting(list)
  if (end === list.length) return
  result[name] = list.slice(0, end)
  const odd = result[`${name}_base64`]
  if (odd) {
    const kept = Object.entries(odd).filter(([index]) => Number(index) < end)
    result[`${name}_base64`] = Object.fromEntries(kept)
  }
  notes.push(`${name} contains ${end} of ${list.length} items. Use a narrower path or pattern.`)
}
