/** Every endpoint, by its name in routes.ts. */
import * as z from 'zod'
import { getAccount, getUsage } from './account.ts'
import { checkAllowlist, clearAllowlist, getAllowlist, setAllowlist } from './allowlist.ts'
import { createApiKey, listApiKeys, revokeApiKey, rotateApiKey } from './api-keys.ts'
import { changePassword, endSessions, logIn, signUp } from './auth.ts'
import { type Endpoint, endpoint } from './endpoint.ts'
import {
  attachExec,
  execCommand,
  getExec,
  listExecs,
  readExecOutput,
  stopExec,
  streamExec,
  writeExecStdin,
} from './exec.ts'
import {
  createFile,
  editFile,
  globFiles,
  grepFiles,
  listFiles,
  readRawFile,
  viewFile,
  writeRawFile,
} from './files.ts'
import { callMcp } from './mcp.ts'
import type { RouteName } from './routes.ts'
import { createSandbox, destroySandbox, getSandbox, listSandboxes } from './sandboxes.ts'
import { createSecret, deleteSecret, listSecrets } from './secrets.ts'

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

export const endpoints = {
  signUp,
  logIn,
  createApiKey,
  listApiKeys,
  revokeApiKey,
  rotateApiKey,
  createSandbox,
  listSandboxes,
  getSandbox,
  destroySandbox,
  execCommand,
  listExecs,
  getExec,
  streamExec,
  writeExecStdin,
  readExecOutput,
  stopExec,
  attachExec,
  viewFile,
  createFile,
  editFile,
  listFiles,
  globFiles,
  grepFiles,
  readRawFile,
  writeRawFile,
  getAllowlist,
  setAllowlist,
  clearAllowlist,
  checkAllowlist,
  createSecret,
  listSecrets,
  deleteSecret,
  getAccount,
  getUsage,
  changePassword,
  endSessions,
  callMcp,
  getOpenApi,
  getDocs,
} satisfies Record<RouteName, Endpoint>
