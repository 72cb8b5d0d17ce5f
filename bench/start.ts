/** Measures the CPU time that an API and a worker need to start from the image's bundles. */
import { median } from './figures.ts'
import { cpuSeconds } from './gauges.ts'
import { extractImage } from './image.ts'
import { makeNamespace } from './namespace.ts'
import { kubeconfig, type Part, type Row } from './part.ts'
import { startStack } from './stack.ts'

const rounds = 9
const maxMs = 500

export const start: Part = {
  title: 'Startup of the processes of the image',
  needsCluster: true,
  async measure() {
    using image = await extractImage()
    await using namespace = await makeNamespace(kubeconfig())
    await using stack = await startStack(namespace.env)
    const measure = async (role: 'api' | 'worker', words: string[]): Promise<Row> => {
      const values: number[] = []
      for (let round = 0; round < rounds; round++) {
        const process = await stack.start(image.entries[role], words, role)
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
