/** A worker that kills itself at the crash point CRASH_AT, or freezes once at FREEZE_AT. */
import closeWithGrace from 'close-with-grace'
import { readSettings } from '../../shared/platform/settings.ts'
import { startWorker } from '../../workers/worker.ts'

const { CRASH_AT, FREEZE_AT } = process.env
let hasFrozen = false

const worker = await startWorker(readSettings(process.env, 'worker'), {
  reach(point) {
    if (point === CRASH_AT) process.kill(process.pid, 'SIGKILL')
    if (point !== FREEZE_AT || hasFrozen) return
    hasFrozen = true
    process.kill(process.pid, 'SIGSTOP')
  },
})
closeWithGrace({ delay: 25_000 }, () => worker.stop())
