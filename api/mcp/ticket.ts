/** Encodes a tool call in the ids of its events, so that any API process can resume a broken stream. */
import type { EventStore } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { Id } from '../../shared/contract/endpoint.ts'
import { parseJson } from '../../shared/contract/json.ts'
import { mcpEventId, type ToolName, tools } from '../../shared/contract/mcp.ts'
import { invalid } from '../errors/invalid.ts'

/** The protocol version whose clients can resume a stream that broke before its first event. */
export const resumable = '2025-11-25'

const Name = z.union([z.string(), z.number()])

const Ticket = z.object({
  requestId: Name,
  progressToken: Name.optional(),
  tool: z.enum(Object.keys(tools) as [ToolName, ...ToolName[]]),
  command: z.object({ sandboxId: Id, key: z.string().max(64) }).optional(),
  /** Start time of the call, in milliseconds since the Unix epoch. */
  at: z.int().min(0),
})

/** The description of a tool call in its event ids. A ticket grants no access, so it is not signed. */
export type Ticket = z.infer<typeof Ticket>

export function numberEvents(ticket: Ticket, from = 0): EventStore {
  const name = Buffer.from(JSON.stringify(ticket)).toString('base64url')
  let next = from
  return {
    storeEvent: async () => `${name}.${next++}`,
    replayEventsAfter: () => Promise.reject(new Error('events are not stored')),
  }
}

/** @throws {Problem} `invalid_request` if the event id is malformed */
export function readEventId(eventId: string): { ticket: Ticket; next: number } {
  const [, name = '', number] = mcpEventId.exec(eventId) ?? []
  const { data: ticket } = Ticket.safeParse(parseJson(Buffer.from(name, 'base64url').toString()))
  if (!ticket) throw invalid({ path: 'last-event-id', message: 'must be the id of an event of /v1/mcp' })
  return { ticket, next: Number(number) + 1 }
}
