/** The commands of a session. */
import type { ExecSummary } from '../../shared/contract/exec.ts'
import type { Api } from '../core/api.ts'

/** All pages, newest first: what runs may have been started before a hundred others. */
export async function listCommands(api: Api, id: string): Promise<ExecSummary[]> {
  const commands: ExecSummary[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await api.call('listExecs', { params: { id }, query: { limit: 100, cursor } })
    commands.push(...page.data)
    if (page.next_cursor === null) return commands
    cursor = page.next_cursor
  }
}

export const isRunning = ({ status }: ExecSummary): boolean => status === 'running'
