import * as z from 'zod'
import { family, Id } from './endpoint.ts'
import { inside, insideErrors } from './exec.ts'
import { whole } from './texts.ts'

export const ports = family({
  connectPort: {
    summary:
      'Connect to a TCP port in a sandbox over a WebSocket. Binary frames of at most 64 KiB contain the data. The text frame `{"type":"eof"}` ends the data sent to the port',
    method: 'GET',
    path: '/v1/sandboxes/:id/ports/:port',
    example: { params: { port: '3000' }, client: 'sandlot forward 3000' },
    ...inside,
    bucket: 'connections',
    status: 101,
    params: z.object({ id: Id, port: whole(1, 65_535) }),
    rawReply: 'websocket',
    errors: insideErrors,
  },
})
