import * as z from 'zod'
import { family } from './endpoint.ts'

export const openApi = family({
  getOpenApi: {
    summary: 'Get the OpenAPI description of this API',
    method: 'GET',
    path: '/v1/openapi.json',
    example: { client: 'sandlot openapi' },
    credential: 'none',
    bucket: 'reads',
    reply: z.looseObject({ openapi: z.string() }),
  },
  getDocs: {
    summary: 'Get the API description as an HTML page',
    method: 'GET',
    path: '/v1/docs',
    example: {},
    credential: 'none',
    bucket: 'reads',
    rawReply: 'text/html',
  },
})
