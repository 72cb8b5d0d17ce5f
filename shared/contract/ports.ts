import * as z from 'zod'
import { family, Id } from './endpoint.ts'
import { inside, insideErrors } from './exec.ts'
import { whole } from './texts.ts'

export const ports = family({
  connectPort: {
    summary:
      'A WebSocket to a TCP port inside a sandbox: binary frames are its bytes, 64 KiB a message; `{"type":"eof"}` ends those to the port',
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
