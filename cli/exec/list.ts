import type { ExecSummary } from '../../shared/contract/exec.ts'
import { type Api, allPages } from '../core/api.ts'

/** Reads all pages, because running commands are not always on the first page. */
export const listCommands = (api: Api, id: string): Promise<ExecSummary[]> =>
  allPages((query) => api.call('listExecs', { params: { id }, query }))

export const isRunning = ({ status }: ExecSummary): boolean => status === 'running'
