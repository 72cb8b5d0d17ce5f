import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { V1Pod } from '@kubernetes/client-node'
import { describe, expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { hasHelm, render, valuesOf } from './helm.ts'

describe.skipIf(!hasHelm)('helm test', () => {
  const world = shareWorld()

  async function runProgram(url: string) {
    const pod = render(valuesOf('minimal')).find(({ metadata }) => metadata!.name === 'sandlot-test') as V1Pod
    const [, ...args] = pod.spec!.containers[0]!.command!
    const program = args.pop()!.replace('http://sandlot-api', url)
    const child = spawn(process.execPath, [...args, program], { stdio: ['ignore', 'pipe', 'pipe'] })
    const [out, err, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'exit'),
    ])
    return { out, err, code }
  }

  test('helm test runs a command in a sandbox and deletes its account', async () => {
    const { out, err, code } = await runProgram(world.url())
    expect(err).toBe('')
    expect(out).toBe('A sandbox was created and ran a command.\n')
    expect(code).toBe(0)
    await world.eventually(async () => {
      const accounts = await world.db.query("select from account where email like 'helm-test-%'")
      return accounts.length === 0
    }, 20_000)
  })

  test('helm test fails if the API is unreachable', async () => {
    const { err, code } = await runProgram('http://127.0.0.1:1')
    expect(err).toContain('fetch failed')
    expect(code).toBe(1)
  })
})
