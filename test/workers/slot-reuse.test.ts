/** Slots that run more than one command. */
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openMetrics } from '../../shared/platform/metrics.ts'
import type { Driver, Pod } from '../../workers/drivers/driver.ts'
import { openSlot, type Slot } from '../../workers/shell/slot.ts'
import { SlotPool } from '../../workers/shell/slot-pool.ts'
import { changed, describeInSandboxes, type Sandboxes } from '../support/sandbox.ts'

describeInSandboxes('a slot whose command has ended', (open) => {
  let sandboxes: Sandboxes
  let pod: Pod

  beforeAll(async () => {
    sandboxes = await open()
    pod = await sandboxes.make()
  })
  afterAll(() => sandboxes?.close())
  afterEach(() => sandboxes.driver.endProcesses(pod))

  /** Runs a shell script, and returns its output and whether the slot can run another command. */
  const runScript = async (slot: Slot, script: string) => {
    const taken = { stdout: '', stderr: '' }
    const end = await slot.run(
      { argv: ['/bin/sh', '-c', script], noStdin: true },
      {
        onStdout(chunk) {
          taken.stdout += chunk
        },
        onStderr(chunk) {
          taken.stderr += chunk
        },
      },
    )
    return { ...taken, code: end.kind === 'exited' ? end.code : end.why, again: await slot.canRunAgain() }
  }

  test('runs other commands in the same shell, unchanged by the previous ones', async () => {
    const slot = await openSlot(sandboxes.driver, pod)
    for (const [count, text] of ['plain', 'x'.repeat(3_000), 'ä €'].entries()) {
      const script = `printf '%s' '${text}'; echo "$PPID $PWD $left" >&2; left=1; export left; cd /; exit ${count}`
      const stderr = `${slot.pid} /workspace \n`
      expect(await runScript(slot, script)).toEqual({ stdout: text, stderr, code: count, again: true })
    }
    slot.close()
  })

  test.each([
    ['in the background', 'sleep 60 &'],
    ['without open output', 'sleep 60 >/dev/null 2>&1 &'],
    ['in a new session', 'setsid sleep 60 &'],
    ['of a process that has ended', '(setsid sh -c "sleep 60 & exit" &); sleep 0.1'],
    ['that prints without pause', 'yes & yes >&2 & sleep 0.1'],
  ])('is closed if the command left a process %s', async (_, script) => {
    const slot = await openSlot(sandboxes.driver, pod)
    expect(await runScript(slot, script)).toMatchObject({ code: 0, again: false })
    await slot.closed
  })

  test('loses no output if an earlier command made the streams non-blocking', async ({ skip }) => {
    const slot = await openSlot(sandboxes.driver, pod)
    const unblock = 'dd if=/dev/null oflag=nonblock; dd if=/dev/null oflag=nonblock >&2'
    const first = await runScript(slot, unblock)
    if (first.code !== 0) skip('the dd of busybox cannot make a stream non-blocking')
    expect(first).toMatchObject({ again: true })
    const slow = await slot.run(
      { argv: ['seq', '200000'], noStdin: true },
      { onStdout: () => sleep(20), onStderr() {} },
    )
    expect(slow).toEqual({ kind: 'exited', code: 0 })
    slot.close()
  })

  test('runs other commands alongside processes of an earlier command and of other slots', async () => {
    const [server, slot, other] = [
      await openSlot(sandboxes.driver, pod),
      await openSlot(sandboxes.driver, pod),
      await openSlot(sandboxes.driver, pod),
    ]
    await runScript(server, 'setsid sleep 60 >/dev/null 2>&1 &')
    const alongside = runScript(other, 'for i in 1 2 3; do sleep 0.5; done')
    for (let count = 0; count < 3; count++)
      expect(await runScript(slot, 'sleep 0.2')).toMatchObject({ code: 0, again: true })
    expect(await alongside).toMatchObject({ code: 0, again: true })
    slot.close()
    other.close()
  })

  test('does not name the process of an earlier command if it dies before the next command', async () => {
    const slot = await openSlot(sandboxes.driver, pod)
    expect(await runScript(slot, 'true')).toMatchObject({ again: true })
    expect(slot.processes.command).toBeGreaterThan(0)
    await sandboxes.driver.endProcesses(pod)
    await slot.closed
    expect(await runScript(slot, 'true')).toMatchObject({ again: false })
    expect(slot.processes.command).toBeUndefined()
  })

  test('is used for the next command if it is given back', async () => {
    let starts = 0
    const start: Driver['start'] = (...args) => {
      starts += 1
      return sandboxes.driver.start(...args)
    }
    const driver = changed(sandboxes.driver, { start, startsSlowly: false })
    const pool = new SlotPool({ driver, log: pino({ level: 'silent' }), metrics: openMetrics('test') })
    const { slot } = await pool.take('sbx_a', pod)
    for (let count = 0; count < 3; count++) {
      expect(await runScript(slot, 'true')).toMatchObject({ again: true })
      pool.giveBack('sbx_a', slot)
      expect(pool.ready('sbx_a')).toBe(1)
      expect(await pool.take('sbx_a', pod)).toEqual({ slot, warm: true })
    }
    expect(starts).toBe(1)
    pool.drop('sbx_a')
    pool.giveBack('sbx_a', slot)
    await slot.closed
  })
})
