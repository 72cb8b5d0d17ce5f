import { createFile, viewFile } from '../../shared/contract/files.ts'
import { unavailable } from '../../shared/problem.ts'
import type { App } from '../app.ts'
import { route } from '../route.ts'
import { running } from '../running-sandbox.ts'
import { CallLost } from '../workers.ts'

const timeoutMs = 60_000

export const files = (app: App) => [
  route(viewFile, async ({ account, params, query, requestId, signal }) => {
    const sandbox = { accountId: account.id, sandboxId: params.id }
    await running(app, { ...sandbox, signal })
    const { path, start_line: startLine, end_line: endLine } = query
    return app.workers
      .call('viewFile', { ...sandbox, requestId, path, startLine, endLine }, { signal, timeoutMs })
      .catch(sayLost('The worker was lost while it read the file. Try again.'))
  }),

  route(createFile, async ({ account, params, body, requestId, signal }) => {
    const sandbox = { accountId: account.id, sandboxId: params.id }
    await running(app, { ...sandbox, signal })
    return app.workers
      .call('createFile', { ...sandbox, requestId, ...body }, { signal, timeoutMs })
      .catch(
        sayLost('The worker was lost while it wrote the file: it is there whole, or as before. Look at it.'),
      )
  }),
]

const sayLost = (words: string) => (error: unknown) => {
  throw error instanceof CallLost ? unavailable(words, error) : error
}
