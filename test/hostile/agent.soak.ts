/** A hostile agent of a local sandbox, with a neighbour on the same worker. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { agentSocketOf, replaceAgent, status } from './hostile-agent.ts'
import { withNeighbour } from './neighbour.ts'

const world = shareWorld()
const bounds = { floorMs: 1_000, growthMiB: 64 }
const seconds = 10
const callers = 8
/** Pause between a caller's requests. All callers share the default rate limit of 120 requests per minute. */
const pauseMs = (callers * 60_000) / 120

const floods = {
  'repeats of `started`': { role: 'main', endless: status({ started: true }) },
  'empty lines': { role: 'main', endless: Buffer.from('\n') },
  'bytes of output': { started: true, role: 'stdout', endless: Buffer.from('x') },
  'bytes of error output': { started: true, role: 'stderr', endless: Buffer.from('x') },
  'lines that take a slot': { started: true, role: 'stdout', endless: Buffer.from('1\n') },
} as const

test.each(Object.entries(floods))(
  "a hostile local agent's endless %s do not slow down other sandboxes",
  async (_, flood) => {
    await withNeighbour(
      world,
      async ({ params, sh }) => {
        const sent = await replaceAgent(agentSocketOf(world, params.id), flood)
        const until = performance.now() + seconds * 1_000
        await Promise.all(
          Array.from({ length: callers }, async () => {
            while (performance.now() < until) {
              await Promise.all([sh('true', { timeout_ms: 2_000 }).catch(() => {}), sleep(pauseMs)])
            }
          }),
        )
        const mebibytes = sent.reduce((sum, bytes) => sum + bytes, 0) / 1024 / 1024
        console.info(`${sent.length} connections, ${mebibytes.toFixed(0)} MiB sent`)
        expect(sent.length).toBeGreaterThan(0)
      },
      bounds,
    )
  },
)
