/**
 * The order of the files: the slow ones begin first, so that none of them runs on when all others have ended. vitest
 * keeps a process only for a next file of the same project, so those of a project follow each other.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Those above some fifteen seconds, the longest first, each beside others that leave it processors: some mostly wait, some
 * compute. The gate's own output tells how long each file takes.
 */
const longOnes = [
  'test/api/admin.test.ts',
  'test/cli/picker-on-a-terminal.test.ts',
  'test/drivers/kubernetes-failures.test.ts',
  'test/cli/sessions.test.ts',
  'test/start/stack.test.ts',
  'test/api/outages.test.ts',
  'test/cli/commands.test.ts',
  'test/cli/exec-terminal.test.ts',
  'test/api/document.test.ts',
  'test/api/exec-attach.test.ts',
  'test/api/secrets-inside.test.ts',
  'test/image.test.ts',
  'test/workers/frozen.test.ts',
  'test/cli/settings.test.ts',
  'test/api/errors.test.ts',
  'test/api/file-pairs.test.ts',
  'test/workers/ends.test.ts',
  'test/api/redis-failover.test.ts',
  'test/cli/pairs.test.ts',
  'test/api/api-keys.test.ts',
  'test/api/stop.test.ts',
  'test/api/refused-commands.test.ts',
  'test/api/exec-events.test.ts',
  'test/workers/sigterm.test.ts',
  'test/drivers/kubernetes.test.ts',
  'test/workers/cap.test.ts',
  'test/workers/frozen-start.test.ts',
  'test/api/exec-background.test.ts',
  'test/drivers/kubernetes-walls.test.ts',
  'test/workers/orphans.test.ts',
  'test/workers/slots.test.ts',
  'test/workers/cluster-walls.test.ts',
  'test/cli/copy.test.ts',
  'test/drivers/local-walls.test.ts',
  'test/workers/late.test.ts',
  'test/api/files-search.test.ts',
  'test/api/ports.test.ts',
  'test/api/files-at-once.test.ts',
  'test/cli/forward.test.ts',
  'test/cli/whole-path.test.ts',
  'test/api/bytes.test.ts',
  'test/api/http-rules.test.ts',
  'test/cli/exec-stream.test.ts',
  'test/api/pairs.test.ts',
  'test/api/mcp-resume.test.ts',
  'test/drivers/local.test.ts',
  'test/workers/file-steps.test.ts',
  'test/cli/policies.test.ts',
  // Short texts that take some ten seconds: vitest would leave them to the end.
  'test/api/sandbox-exhausted.test.ts',
  'test/workers/crash-points.test.ts',
  'test/workers/crash-commands.test.ts',
  'test/stall.test.ts',
  'test/cli/ui/refresh.test.ts',
  'test/api/locked-account.test.ts',
  'test/api/sandbox-reset.test.ts',
  'test/api/exec-redis-emptied.test.ts',
]

/** The last files of `together` are short, so at the end no process works on by itself. */
const projects = ['watchful', 'together', 'alone']

export default class LongOnesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longOnes.findIndex((path) => moduleId.endsWith(`/${path}`))
      return at < 0 ? longOnes.length : at
    }
    const turn = ({ project }: TestSpecification) => projects.indexOf(project.name)
    return (await super.sort(files)).toSorted((a, b) => turn(a) - turn(b) || rank(a) - rank(b))
  }
}
