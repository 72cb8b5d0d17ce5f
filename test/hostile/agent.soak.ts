/** A tenant of the local driver who has replaced the agent of a sandbox, and a neighbour who measures. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Frame } from '../../workers/drivers/local/frames.mjs'
import { shareWorld } from '../support/shared.ts'
import { agentSocketOf, frame, replaceAgent } from './impostor.ts'
import { withNeighbour } from './neighbour.ts'

const world = shareWorld()
const bounds = { floorMs: 1_000, growthMiB: 64 }
const seconds = 10
const callers = 8
/** Together the callers send what the default rate limit admits: 120 requests a minute. */
const pauseMs = (callers * 60_000) / 120

const floods = {
  'repeats of `started`': { endless: frame(Frame.started) },
  'empty frames': { first: [frame(Frame.started)], endless: frame(Frame.stdout) },
  'frames of one byte': { first: [frame(Frame.started)], endless: frame(Frame.stdout, 'x') },
  'frames of one byte, alternating between the streams': {
    first: [frame(Frame.started)],
    endless: Buffer.concat([frame(Frame.stdout, 'x'), frame(Frame.stderr, 'x')]),
  },
  'lines that take a slot': { first: [frame(Frame.started)], endless: frame(Frame.stdout, '1\n') },
}

test.each(Object.entries(floods))('endless %s of an agent delay no neighbour', async (_, flood) => {
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
})
