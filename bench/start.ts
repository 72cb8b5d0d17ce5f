/** Measures the CPU time that an API and a worker need to start from the image's bundles. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gatherContents } from '../scripts/image/contents.ts'
import { median } from './figures.ts'
import { cpuSeconds } from './gauges.ts'
import { makeNamespace } from './namespace.ts'
import { kubeconfig, type Part, type Row } from './part.ts'
import { startStack } from './stack.ts'

const rounds = 9
const maxMs = 500

export const start: Part = {
  title: 'Startup of the processes of the image',
  needsCluster: true,
  async measure() {
    await using undo = new AsyncDisposableStack()
    const folder = mkdtempSync(join(tmpdir(), 'sandlot-bench-'))
    undo.defer(() => rmSync(folder, { recursive: true, force: true }))
    const { layers } = await gatherContents()
    for (const { path, data } of layers.at(-1)!) {
      if (!data) continue
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), data)
    }
    const namespace = undo.use(await makeNamespace(kubeconfig()))
    const stack = undo.use(await startStack(namespace.env))
    const measure = async (role: 'api' | 'worker', words: string[]): Promise<Row> => {
      const values: number[] = []
      for (let round = 0; round < rounds; round++) {
        const process = await stack.start(join(folder, 'app', `${role}.mjs`), words, role)
        values.push(cpuSeconds(process) * 1000)
      }
      return { what: `${role}, until it is ready`, ours: true, unit: 'ms of CPU', values }
    }
    const rows = [await measure('api', ['listening']), await measure('worker', ['listening', 'working'])]
    const worker = median(rows[1]!.values)
    return {
      rows,
      verdicts: [
        {
          what: `a worker starts with at most ${maxMs} ms of CPU: ${worker.toFixed(0)}`,
          met: worker <= maxMs,
        },
      ],
      notes: [
        `User and system time of the process, in steps of 10 ms, until its log says \`listening\` and, for a worker, \`working\`: ${rounds} starts of each.`,
      ],
    }
  },
}
