import * as z from 'zod'
import { endpoint } from './endpoint.ts'

export const getOpenApi = endpoint('getOpenApi', {
  summary: 'This description',
  reply: z.looseObject({ openapi: z.string() }),
  errors: [],
})

export const getDocs = endpoint('getDocs', {
  summary: 'The same as a page to read',
  rawReply: 'text/html',
  errors: [],
})
