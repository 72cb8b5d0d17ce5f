import { expect, test } from 'vitest'
import { describeOnBothDrivers } from '../support/drivers.ts'
import { eventually } from '../support/eventually.ts'
import { shareSandbox } from '../support/shared.ts'

const commands = 8

describeOnBothDrivers('commands in one sandbox', (driver) => {
  const { alice, params, sh } = shareSandbox({ driver })
  const shells = async (script = 'echo $PPID') => {
    const found: string[] = []
    for (let count = 0; count < commands; count++) found.push((await sh(script)).stdout)
    return new Set(found)
  }

  test('consecutive commands run in the same few shells, until one of them leaves a process', async () => {
    // A worker that has just started does not know yet that it is the slot owner.
    const isReused = async () => (await shells()).size <= 3
    await eventually(isReused, 5_000)
    expect((await shells('sleep 60 >/dev/null 2>&1 & echo $PPID')).size).toBe(commands)
    await eventually(isReused, 5_000)
  })

  test('no command runs in the shell of a command that was signaled', async () => {
    const running = sh('sleep 3; echo $PPID')
    const { id: exec_id } = await eventually(async () => {
      const { data } = (await alice.call('listExecs', { params })).body
      return data.find((exec) => exec.status === 'running')
    }, 5_000)
    await alice.call('stopExec', { params: { id: params.id, exec_id }, query: { signal: 'CONT' } })
    const { status, stdout } = await running
    expect(status).toBe('exited')
    expect(await shells()).not.toContain(stdout)
  })
})
