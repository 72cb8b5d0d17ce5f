/** Measures creations and commands on the local driver, one at a time. */
import { type Part, timed } from './part.ts'
import { startStack } from './stack.ts'

const creates = 20
const commands = 100
const warmUp = 3

export const local: Part = {
  title: 'On the local driver, one at a time',
  needsCluster: false,
  async measure() {
    await using stack = await startStack({ SANDBOX_DRIVER: 'local' })
    const times = { create: [] as number[], exec: [] as number[] }
    let id = ''
    const create = async () => {
      id = String((await stack.request('POST', '/v1/sandboxes', {})).id)
    }
    const exec = async () => {
      const result = await stack.request('POST', `/v1/sandboxes/${id}/exec`, { command: ['true'] })
      if (result.exit_code !== 0) throw new Error(`true ended with ${JSON.stringify(result)}`)
    }
    for (let round = -warmUp; round < creates; round++) {
      const ms = await timed(create)
      if (round >= 0) times.create.push(ms)
      if (round < creates - 1) await stack.request('DELETE', `/v1/sandboxes/${id}`)
    }
    for (let round = -warmUp; round < commands; round++) {
      const ms = await timed(exec)
      if (round >= 0) times.exec.push(ms)
    }
    await stack.request('DELETE', `/v1/sandboxes/${id}`)
    return {
      rows: [
        { what: 'create', ours: true, unit: 'ms', values: times.create },
        { what: 'exec `true`', ours: true, unit: 'ms', values: times.exec },
      ],
      notes: ['Over HTTP, without a pool.'],
    }
  },
}
