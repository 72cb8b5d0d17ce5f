/** Every endpoint, by its name in routes.ts. */
import * as z from 'zod'
import { getAccount } from './account.ts'
import { createApiKey, listApiKeys, revokeApiKey } from './api-keys.ts'
import { logIn, signUp } from './auth.ts'
import { type Endpoint, endpoint } from './endpoint.ts'
import { execCommand } from './exec.ts'
import { createFile, viewFile } from './files.ts'
import type { RouteName } from './routes.ts'
import { createSandbox, destroySandbox, getSandbox, listSandboxes } from './sandboxes.ts'

export const getOpenApi = endpoint('getOpenApi', {
  summary: 'This description',
  reply: z.looseObject({ openapi: z.string() }),
  errors: [],
})

export const endpoints = {
  signUp,
  logIn,
  createApiKey,
  listApiKeys,
  revokeApiKey,
  createSandbox,
  listSandboxes,
  getSandbox,
  destroySandbox,
  execCommand,
  viewFile,
  createFile,
  getAccount,
  getOpenApi,
} satisfies Record<RouteName, Endpoint>
