/** The entry of a worker whose plug is pulled at the crash point that CRASH_AT names. */
import { readSettings } from '../../shared/settings.ts'
import { startWorker } from '../../workers/worker.ts'

await startWorker(readSettings(process.env), {
  reach(point) {
    if (point === process.env.CRASH_AT) process.kill(process.pid, 'SIGKILL')
  },
})
