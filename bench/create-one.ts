import { timed } from './part.ts'
import type { Stack } from './stack.ts'

export interface CreateResult {
  id: string
  /** Until a command can run. */
  ms: number
  isClaimed: boolean
}

export async function createOne({ request }: Stack): Promise<CreateResult> {
  let sandbox: Record<string, unknown> = {}
  const ms = await timed(async () => {
    sandbox = await request('POST', '/v1/sandboxes', {})
  })
  const { pod } = sandbox.timings as Record<string, unknown>
  return { id: String(sandbox.id), ms, isClaimed: pod === 'claimed' }
}
