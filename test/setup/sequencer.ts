/**
 * The order of the files: the slow ones begin first, so that none of them runs on when all others have ended. vitest
 * keeps a process only for a next file of the same project, so those of a project follow each other.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The longest first, of those above twenty seconds. The gate's own output tells how long each file takes. */
const longOnes = [
  'test/drivers/kubernetes.test.ts',
  'test/api/exec-background.test.ts',
  'test/api/exec-events.test.ts',
  'test/start/stack.test.ts',
  'test/api/outages.test.ts',
  'test/api/redis-failover.test.ts',
  'test/cli/commands.test.ts',
  'test/workers/crash-points.test.ts',
  'test/drivers/local-walls.test.ts',
  'test/api/file-pairs.test.ts',
  'test/api/exec-idempotency.test.ts',
  'test/cli/exec-stream.test.ts',
  'test/drivers/kubernetes-failures.test.ts',
  'test/workers/crash-commands.test.ts',
  'test/workers/sigterm.test.ts',
  'test/cli/files.test.ts',
  'test/cli/picker-on-a-terminal.test.ts',
  'test/workers/frozen.test.ts',
  'test/cli/sessions.test.ts',
  'test/workers/orphans.test.ts',
  'test/api/refused-commands.test.ts',
  'test/api/exec-attach.test.ts',
  'test/api/stop.test.ts',
  'test/workers/ends.test.ts',
  'test/api/files-search.test.ts',
  'test/drivers/local-workers.test.ts',
  'test/drivers/kubernetes-walls.test.ts',
  'test/api/admin.test.ts',
  'test/api/secrets-inside.test.ts',
  'test/workers/frozen-start.test.ts',
  'test/cli/exec-terminal.test.ts',
]

/** Most of the slow ones are in the first. */
const projects = ['together', 'watchful', 'alone']

export default class LongOnesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longOnes.findIndex((path) => moduleId.endsWith(`/${path}`))
      return at < 0 ? longOnes.length : at
    }
    const turn = ({ project }: TestSpecification) => projects.indexOf(project.name)
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b) || turn(a) - turn(b))
  }
}
