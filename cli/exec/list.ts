import type { ExecSummary } from '../../shared/contract/exec.ts'
import { type Api, allPages } from '../core/api.ts'

/** Lists all commands of a session, because a running command might not be on the first page. */
export const listCommands = (api: Api, id: string): Promise<ExecSummary[]> =>
  allPages((query) => api.call('listExecs', { params: { id }, query }))

export const isRunning = ({ status }: ExecSummary): boolean => status === 'running'
