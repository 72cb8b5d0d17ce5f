/** Finds missing kubelet limits in the settings that `/configz` returns. */
import { expect, test } from 'vitest'
import { type KubeletSettings, listGaps } from '../../workers/drivers/kubernetes/nodes.ts'

const well = { podPidsLimit: 256, evictionHard: { 'memory.available': '100Mi', 'nodefs.inodesFree': '5%' } }
const processes = /SANDBOX_PIDS.* Set podPidsLimit: 256/
const files = /inodes.* Set evictionHard nodefs\.inodesFree: 5%/

test.each<[string, KubeletSettings, RegExp[]]>([
  ['nothing', well, []],
  ['nothing, with a lower limit than documented', { ...well, podPidsLimit: 100 }, []],
  ['processes, by default', { ...well, podPidsLimit: -1 }, [/any number of processes/]],
  ['processes, above the documented limit', { ...well, podPidsLimit: 1024 }, [/1024 processes/]],
  ['files, if other thresholds replace the defaults', { ...well, evictionHard: {} }, [files]],
  ['files, with a threshold of 0%', { ...well, evictionHard: { 'nodefs.inodesFree': '0%' } }, [files]],
  ['both, with no settings', {}, [processes, files]],
])('reports the missing node limits: %s', (_, settings, gaps) => {
  expect(listGaps(settings, 256)).toEqual(gaps.map((gap) => expect.stringMatching(gap)))
})
