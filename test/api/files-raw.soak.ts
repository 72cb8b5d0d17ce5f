/** Files much larger than the processes' buffers. */
import { expect, test } from 'vitest'
import { describeOnEveryImage } from '../support/drivers.ts'
import { memoryOf, peakMemory } from '../support/memory.ts'
import { rawFiles } from '../support/raw-files.ts'
import { shareSandbox } from '../support/shared.ts'

const mebibyte = 1024 * 1024

describeOnEveryImage('raw files', ({ driver, env }) => {
  const { world, alice, params, sh } = shareSandbox({ driver, env })
  const { passBothWays } = rawFiles({ world, alice, params })

  test("transferring more than 100 MB does not increase any process's memory use", async () => {
    // V8 collects garbage late, so growth only has to stay far below the file size.
    await passBothWays(64 * mebibyte)
    const processes = [...world.apis, ...world.workers]
    const before = processes.map(memoryOf)
    const peaks = await peakMemory(processes, () => passBothWays(112 * mebibyte))
    for (const [index, most] of peaks.entries()) {
      expect(most - before[index]!).toBeLessThan(64 * mebibyte)
    }
    await sh('rm big')
  })
})
