/** Processes that use a processor as much as they may: what a test has beside it on a busy machine. */
import { spawn } from 'node:child_process'

/** A process that is killed cannot end its children: each looks, some hundred times a second, whose child it is. */
const loop = `
const parent = Number(process.argv[1])
while (process.ppid === parent) for (let n = 0; n < 1e7; n++);
`

/**
 * @param {number} count
 * @returns {() => void} ends them. They also end with this process, whatever ends it
 */
export function startBusyLoops(count) {
  const args = ['-e', loop, String(process.pid)]
  const loops = Array.from({ length: count }, () => spawn(process.execPath, args, { stdio: 'ignore' }))
  return () => {
    for (const each of loops) each.kill('SIGKILL')
  }
}
