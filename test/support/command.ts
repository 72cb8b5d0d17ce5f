import type { ExecRequest } from '../../shared/contract/exec.ts'
import { limits } from '../../shared/contract/limits.ts'
import { newExecId } from '../../shared/data/ids.ts'
import { Command } from '../../workers/exec/command.ts'

/** A command without a process, for tests of output. @param more a `grace_ms` ties the command to a client */
export const makeCommand = (
  more: Pick<ExecRequest, 'grace_ms'> = {},
  of: { accountId?: string; sandboxId?: string } = {},
) =>
  new Command(
    {
      id: newExecId(),
      sandboxId: 'sbx_1',
      accountId: 'acc_1',
      ...of,
      graceMs: more.grace_ms ?? limits.graceMs.default,
      needsClient: more.grace_ms !== undefined,
      outputEncoding: 'utf-8',
      startedAt: new Date(),
    },
    async () => undefined,
  )
