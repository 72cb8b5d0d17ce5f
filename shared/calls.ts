/**
 * What the API asks of the worker that holds a sandbox, and waits for: commands and files. These
 * are no durable work and may be large, so they travel over HTTP between the two, and Redis only
 * says who is there. ARCHITECTURE.md tells what was measured and why.
 *
 * A call is handed over in two steps: the worker first says that it is there (100 Continue), only
 * then is the body sent. A worker that froze meanwhile never gets a command that its API has given up.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { ExecRequest, ExecResult } from './contract/exec.ts'
import type { CreatedFile, FileView } from './contract/files.ts'
import { deriveKey } from './seal.ts'

export interface Calls {
  exec: { args: InSandbox & { execId: string; request: ExecRequest }; result: ExecResult }
  viewFile: {
    args: InSandbox & { path: string; startLine?: number | undefined; endLine?: number | undefined }
    result: FileView
  }
  createFile: {
    args: InSandbox & {
      path: string
      content: string
      encoding: 'utf-8' | 'base64'
      mode?: string | undefined
      overwrite: boolean
    }
    result: CreatedFile
  }
}
export type CallName = keyof Calls

interface InSandbox {
  sandboxId: string
  accountId: string
  requestId: string
}

export const callPath = (name: CallName) => `/calls/${name}`

/** How a worker tells of a failure that is a client's to see. */
export interface CallProblem {
  code: string
  detail: string
  members: Record<string, unknown>
  retryAfterSeconds?: number
}

/** The bearer credential between API and workers, derived from the newest of SECRETS_KEY. */
export const callToken = (secret: string): string => deriveKey(secret, 'sandlot calls').toString('base64url')

/** @param secrets all of SECRETS_KEY, so that both sides need not change it in the same instant */
export function makeCallTokenCheck(secrets: readonly string[]): (header: string | undefined) => boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  const expected = secrets.map((secret) => digest(`Bearer ${callToken(secret)}`))
  return (header) => {
    const given = digest(header ?? '')
    return expected.some((one) => timingSafeEqual(one, given))
  }
}
