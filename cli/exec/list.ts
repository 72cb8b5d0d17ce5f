/** The commands of a session. */
import type { ExecSummary } from '../../shared/contract/exec.ts'
import { type Api, allPages } from '../core/api.ts'

/** All pages, newest first: what runs may have been started before a hundred others. */
export const listCommands = (api: Api, id: string): Promise<ExecSummary[]> =>
  allPages((query) => api.call('listExecs', { params: { id }, query }))

export const isRunning = ({ status }: ExecSummary): boolean => status === 'running'
