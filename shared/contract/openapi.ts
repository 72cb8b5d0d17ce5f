import * as z from 'zod'
import { family } from './endpoint.ts'

export const openApi = family({
  getOpenApi: {
    summary: 'Get this description',
    method: 'GET',
    path: '/v1/openapi.json',
    example: { client: 'sandlot openapi' },
    credential: 'none',
    bucket: 'reads',
    reply: z.looseObject({ openapi: z.string() }),
    errors: [],
  },
  getDocs: {
    summary: 'Get this description as an HTML page',
    method: 'GET',
    path: '/v1/docs',
    example: {},
    credential: 'none',
    bucket: 'reads',
    rawReply: 'text/html',
    errors: [],
  },
})
