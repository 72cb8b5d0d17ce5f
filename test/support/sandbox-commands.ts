import type { ExecRequest, ExecResult } from '../../shared/contract/exec.ts'
import type { Account } from './account.ts'
import { eventually } from './eventually.ts'

export interface Inside {
  exec(body: ExecRequest): Promise<ExecResult>
  sh(line: string, more?: Partial<ExecRequest>): Promise<ExecResult>
  /** Waits for the exit status of a background command. */
  waitForExit(execId: string): Promise<ExecResult>
  /**
   * Counts processes whose command line matches. The pattern must not match itself (`slee[p] 60`), and must contain a
   * word, because the first process's command line contains ten random digits.
   */
  countOf(pattern: string): Promise<number>
}

export function inside(account: Pick<Account, 'call'>, params: { id: string }): Inside {
  const exec = async (body: ExecRequest) => (await account.call('execCommand', { params, body })).body
  const sh: Inside['sh'] = (line, more = {}) => exec({ command: line, ...more })
  return {
    exec,
    sh,
    waitForExit: (exec_id) =>
      eventually(async () => {
        const { body } = await account.call('getExec', { params: { ...params, exec_id } })
        return body.status === 'running' ? undefined : body
      }, 20_000),
    async countOf(pattern) {
      const lines = 'for p in /proc/[0-9]*; do tr "\\0" " " <$p/cmdline 2>/dev/null; echo; done'
      return Number((await sh(`${lines} | grep -c "${pattern}"`)).stdout)
    },
  }
}

/** Starts processes up to the limit. Stops too early if anything else starts in the sandbox. */
export async function takeAllProcesses(account: Account, params: { id: string }): Promise<void> {
  const fill = '(while sleep 600 </dev/null >/dev/null 2>&1 & do :; done) 2>/dev/null'
  const command = `${fill}; echo full; exec sleep 600 2>/dev/null`
  const { body } = await account.call('execCommand', { params, body: { command, background: true } })
  await eventually(async () => {
    const { body: now } = await account.call('getExec', { params: { ...params, exec_id: body.id } })
    return now.stdout === 'full\n'
  }, 30_000)
}
