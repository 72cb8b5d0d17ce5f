/** What a kubelet's settings leave open, read off settings as `/configz` gives them. */
import { expect, test } from 'vitest'
import { type KubeletSettings, listGaps } from '../../workers/drivers/kubernetes/nodes.ts'

const well = { podPidsLimit: 256, evictionHard: { 'memory.available': '100Mi', 'nodefs.inodesFree': '5%' } }
const processes = /SANDBOX_PIDS says.* Set podPidsLimit: 256/
const files = /inodes.* Set evictionHard nodefs\.inodesFree: 5%/

test.each<[string, KubeletSettings, RegExp[]]>([
  ['nothing', well, []],
  ['nothing, with less than was promised', { ...well, podPidsLimit: 100 }, []],
  ['processes, by default', { ...well, podPidsLimit: -1 }, [/any number of processes/]],
  ['processes, above what was promised', { ...well, podPidsLimit: 1024 }, [/1024 processes/]],
  ['files, where other thresholds replaced the default', { ...well, evictionHard: {} }, [files]],
  ['files, with a threshold of nothing', { ...well, evictionHard: { 'nodefs.inodesFree': '0%' } }, [files]],
  ['both, with no settings', {}, [processes, files]],
])('%s is left open', (_, settings, gaps) => {
  expect(listGaps(settings, 256)).toEqual(gaps.map((gap) => expect.stringMatching(gap)))
})
