/**
 * The event ids of a tool call. Each contains the data of the call, so that any API process can resume a broken stream
 * without stored state.
 */
import type { EventStore } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { Id } from '../../shared/contract/endpoint.ts'
import { parseJson } from '../../shared/contract/json.ts'
import { mcpEventId, type ToolName, tools } from '../../shared/contract/mcp.ts'
import { invalid } from '../errors/invalid.ts'

/** The protocol version whose clients can resume a stream before its first event. */
export const resumable = '2025-11-25'

const Name = z.union([z.string(), z.number()])

const Ticket = z.object({
  /** The id of the JSON-RPC request. */
  requestId: Name,
  progressToken: Name.optional(),
  tool: z.enum(Object.keys(tools) as [ToolName, ...ToolName[]]),
  /** For a command, its sandbox and its Idempotency-Key. */
  command: z.object({ sandboxId: Id, key: z.string().max(64) }).optional(),
  /** When the call began: Unix time in milliseconds. */
  at: z.int().min(0),
})

/** Grants no access; the API key of the request is checked. */
export type Ticket = z.infer<typeof Ticket>

export function numberEvents(ticket: Ticket, from = 0): EventStore {
  const name = Buffer.from(JSON.stringify(ticket)).toString('base64url')
  let next = from
  return {
    storeEvent: async () => `${name}.${next++}`,
    replayEventsAfter: () => Promise.reject(new Error('events are not stored')),
  }
}

/**
 * @returns the call and the number of the next event
 * @throws {Problem} `invalid_request`
 */
export function readEventId(eventId: string): { ticket: Ticket; next: number } {
  const [, name = '', number] = mcpEventId.exec(eventId) ?? []
  const { data: ticket } = Ticket.safeParse(parseJson(Buffer.from(name, 'base64url').toString()))
  if (!ticket) throw invalid({ path: 'last-event-id', message: 'must be the id of an event of /v1/mcp' })
  return { ticket, next: Number(number) + 1 }
}
