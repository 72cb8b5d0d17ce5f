/** Files far larger than what a process may hold of them. */
import { expect, test } from 'vitest'
import { describeOnEveryImage } from '../support/drivers.ts'
import { memoryOf, peakMemory } from '../support/memory.ts'
import { rawFiles } from '../support/raw-files.ts'
import { shareSandbox } from '../support/shared.ts'

const mebibyte = 1024 * 1024

describeOnEveryImage('raw files', ({ driver, env }) => {
  const { world, alice, params, sh } = shareSandbox({ driver, env })
  const { passBothWays } = rawFiles({ world, alice, params })

  test('more than a hundred megabytes pass both ways, and no process grows with them', async () => {
    // Young objects and buffers that nobody needs lie around until V8 looks at them: flat means that
    // what is added stays below what was moved, by far.
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
