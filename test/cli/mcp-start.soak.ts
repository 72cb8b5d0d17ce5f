/** How soon `sandlot mcp serve` is there for an agent. */
import { expect, test } from 'vitest'
import { median } from '../support/measure.ts'
import { clientPath, Home, runProcess } from './client.ts'

const ping = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })}\n`

test('serve has started in less than four times the time of bare Node', async () => {
  using home = new Home()
  const time = async (args: string[]) => {
    const startedAt = performance.now()
    // Answered before any network: no address is set.
    await runProcess(process.execPath, args, home.environment(), { input: ping })
    return performance.now() - startedAt
  }
  const bare: number[] = []
  const serve: number[] = []
  for (let round = 0; round < 7; round++) {
    bare.push(await time(['-e', '0']))
    serve.push(await time([clientPath, 'mcp', 'serve']))
  }
  expect(median(serve)).toBeLessThan(4 * median(bare))
})
