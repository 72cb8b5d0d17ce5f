/** Reads measurements of a process, the machine and the API server. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { KubeConfig } from '@kubernetes/client-node'
import { addressOf, type StartedProcess } from './stack.ts'

export function residentMebibytes({ pid }: Pick<StartedProcess, 'pid'>): number {
  const kibibytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]
  return Number(kibibytes) / 1024
}

/** CPU time of a process since it started. Linux counts in hundredths of a second. */
export function cpuSeconds({ pid }: Pick<StartedProcess, 'pid'>): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** CPU ticks since boot, and the load average of the last minute. */
export async function readMachine() {
  const [line] = (await readFile('/proc/stat', 'utf8')).split('\n', 1)
  const ticks = line!.trim().split(/\s+/).slice(1, 9).map(Number)
  const all = ticks.reduce((a, b) => a + b, 0)
  return { all, idle: ticks[3]! + ticks[4]!, load: loadavg()[0]! }
}

type Machine = Awaited<ReturnType<typeof readMachine>>

/** Returns the later load average, and the busy fraction of all processors between the two readings. */
export const since = (before: Machine, after: Machine) => ({
  load: after.load,
  busy: 1 - (after.idle - before.idle) / Math.max(1, after.all - before.all),
})

/** Number and total duration of reconciler passes since the workers started. */
export async function readSweeps(workers: StartedProcess[]) {
  const sums = { count: 0, seconds: 0 }
  for (const worker of workers) {
    const metrics = await (await fetch(`${addressOf(worker)}/metrics`)).text()
    const read = (what: string) =>
      Number(
        new RegExp(`^sandlot_reconcile_seconds_${what}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(metrics)?.[1] ?? 0,
      )
    sums.count += read('count')
    sums.seconds += read('sum')
  }
  return sums
}

export function readCounts(folder: string, workers: StartedProcess[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const { pid } of workers) {
    const counts = JSON.parse(readFileSync(join(folder, `${pid}.json`), 'utf8')) as Record<string, number>
    for (const [kind, count] of Object.entries(counts)) sums[kind] = (sums[kind] ?? 0) + count
  }
  return sums
}

export async function openServer(admin: KubeConfig) {
  const options = {}
  await admin.applyToHTTPSOptions(options)
  return {
    async read() {
      const asked = request(`${admin.getCurrentCluster()!.server}/metrics`, options).end()
      const [response] = await once(asked, 'response')
      const metrics = await text(response)
      const read = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1])
      const requests = [...metrics.matchAll(/^apiserver_request_total\{.*\} (\S+)$/gm)]
      return {
        cpuSeconds: read('process_cpu_seconds_total'),
        mebibytes: read('process_resident_memory_bytes') / 2 ** 20,
        requests: requests.reduce((sum, [, count]) => sum + Number(count), 0),
      }
    },
  }
}
