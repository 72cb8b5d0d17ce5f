/** The order of the files: the slow ones begin first, so that none of them runs on when all others have ended. */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The longest first, of those above half a minute. The gate's own output tells how long each file takes. */
const longOnes = [
  'test/start/stack.test.ts',
  'test/api/files-at-once.test.ts',
  'test/cli/picker-on-a-terminal.test.ts',
  'test/drivers/kubernetes.test.ts',
  'test/drivers/local-walls.test.ts',
  'test/cli/commands.test.ts',
  'test/api/exec-background.test.ts',
  'test/api/pairs.test.ts',
  'test/workers/cap.test.ts',
  'test/api/redis-failover.test.ts',
  'test/api/admin.test.ts',
  'test/workers/crash-points.test.ts',
  'test/api/errors.test.ts',
  'test/cli/waiting.test.ts',
  'test/cli/sessions.test.ts',
  'test/api/outages.test.ts',
  'test/drivers/local.test.ts',
  'test/api/exec-events.test.ts',
]

export default class LongOnesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longOnes.findIndex((path) => moduleId.endsWith(`/${path}`))
      return at < 0 ? longOnes.length : at
    }
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}
