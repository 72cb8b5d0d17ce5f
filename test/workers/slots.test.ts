import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openMetrics } from '../../shared/platform/metrics.ts'
import { inOrderFor, type WorkerEntry } from '../../shared/rpc/worker-registry.ts'
import {
  type Driver,
  DriverUnavailable,
  type Pod,
  PodExhausted,
  PodGone,
} from '../../workers/drivers/driver.ts'
import type { ShellCommand } from '../../workers/shell/script.ts'
import { diagnoseShell, openSlot, type Slot } from '../../workers/shell/slot.ts'
import { SlotPool, type SlotPoolOptions } from '../../workers/shell/slot-pool.ts'
import { run, shell } from '../drivers/processes.ts'
import { eventually } from '../support/eventually.ts'
import { changed, describeInSandboxes, type Sandboxes } from '../support/sandbox.ts'

const log = pino({ level: 'silent' })

function counting(driver: Driver) {
  const counter = { starts: 0 }
  const start: Driver['start'] = (...args) => {
    counter.starts += 1
    return driver.start(...args)
  }
  return { driver: changed(driver, { start }), counter }
}

async function stdoutOf(slot: Slot, command: ShellCommand) {
  const chunks: Buffer[] = []
  const end = await slot.run(command, { onStdout: (chunk) => void chunks.push(chunk), onStderr: () => {} })
  expect(end).toEqual({ kind: 'exited', code: 0 })
  return Buffer.concat(chunks).toString()
}

const runTrue = (slot: Slot) => stdoutOf(slot, { argv: ['true'] })

describeInSandboxes('slots', (open) => {
  let sandboxes: Sandboxes
  let pod: Pod
  let pool: SlotPool | undefined

  const makePool = (more: Partial<SlotPoolOptions> = {}) => {
    const metrics = openMetrics('test')
    pool = new SlotPool({ driver: sandboxes.driver, log, metrics, ...more })
    const count = async (outcome: string) => {
      const { values } = await metrics.slots.get()
      return values.find(({ labels }) => labels.outcome === outcome)?.value ?? 0
    }
    return { pool, count }
  }
  /** Number of waiting shells, except the one that counts them. */
  const waiting = async () => {
    const look = "grep -l 'IFS= read' /proc/[0-9]*/cmdline 2>/dev/null | wc -l"
    return Number((await run(sandboxes.driver, pod, shell(look.replace('IFS=', '[I]FS=')))).stdout)
  }

  beforeAll(async () => {
    sandboxes = await open()
    pod = await sandboxes.make()
  })
  afterAll(() => sandboxes?.close())
  afterEach(async () => {
    pool?.close()
    await eventually(async () => (await waiting()) === 0, 10_000)
  })

  test('the slot pool keeps at most three slots, that is, waiting shells, per sandbox', async () => {
    const { pool } = makePool()
    for (let count = 0; count < 5; count++) pool.adopt('sbx_a', pod, await openSlot(sandboxes.driver, pod))
    await eventually(async () => (await waiting()) === 3, 10_000)
  })

  // Whether a pod kills runc instead of a shell is random. The soak `sandbox-exhausted` covers that.
  test.each([
    ['exec failed: unable to start container process: read init-p: connection reset by peer', PodExhausted],
    ['read tcp: connection reset by peer', DriverUnavailable],
  ])('classifies a failed shell start by its error message: %s', async (why, ExpectedError) => {
    const ended = Promise.resolve({ kind: 'lost', why } as const)
    const told = await diagnoseShell(sandboxes.driver, pod, { ended })
    expect(told.constructor).toBe(ExpectedError)
  })

  test('a slot receives short and long commands unchanged', async () => {
    const words = [
      'plain',
      "it's $HOME; `x` \\",
      '',
      '-n',
      '%s',
      'two\nlines',
      'ä €',
      'x'.repeat(2_048),
      '\t',
    ]
    for (const text of [...words, words.join('')]) {
      for (const noStdin of [true, false]) {
        const slot = await openSlot(sandboxes.driver, pod)
        expect(await stdoutOf(slot, { argv: ['printf', '%s|', text], noStdin })).toBe(`${text}|`)
        slot.close()
      }
    }
  })

  test('a command without stdin reads EOF immediately', async () => {
    const slot = await openSlot(sandboxes.driver, pod)
    expect(await stdoutOf(slot, { argv: ['cat'], noStdin: true })).toBe('')
    slot.close()
  })

  test('a reader that pauses for several seconds still receives all of stderr', async () => {
    const slot = await openSlot(sandboxes.driver, pod)
    const taken = { stdout: 0, stderr: 0 }
    const script = 'head -c 60000 /dev/zero >&2; echo done'
    const end = await slot.run(
      { argv: ['/bin/sh', '-c', script], noStdin: true },
      {
        onStdout(chunk) {
          taken.stdout += chunk.length
        },
        async onStderr(chunk) {
          if (taken.stderr === 0) await new Promise((resolve) => setTimeout(resolve, 3_000))
          taken.stderr += chunk.length
        },
      },
    )
    expect({ end, taken }).toEqual({
      end: { kind: 'exited', code: 0 },
      taken: { stdout: 5, stderr: 60_000 },
    })
    slot.close()
  })

  test('the slot pool pre-opens no slots if the driver starts processes quickly', async () => {
    const { driver, counter } = counting(sandboxes.driver)
    const { pool } = makePool({ driver: changed(driver, { startsSlowly: false }) })
    pool.prepare('sbx_a', pod)
    for (const starts of [1, 2]) {
      const { slot, warm } = await pool.take('sbx_a', pod)
      await runTrue(slot)
      expect({ warm, starts: counter.starts }).toEqual({ warm: false, starts })
    }
  })

  describe('slots of a driver that starts processes slowly', () => {
    const slowly = (more: Partial<Driver> = {}) => changed(sandboxes.driver, { startsSlowly: true, ...more })

    test('a command runs in a pre-opened slot, and slots for later commands are opened after a delay', async () => {
      const { driver, counter } = counting(slowly())
      const { pool, count } = makePool({ driver })
      pool.prepare('sbx_a', pod)
      await eventually(() => pool.ready('sbx_a') === 1, 10_000)
      const first = await pool.take('sbx_a', pod)
      expect(counter.starts).toBe(1)
      await runTrue(first.slot)
      await eventually(() => pool.ready('sbx_a') === 2, 10_000)
      const second = await pool.take('sbx_a', pod)
      await runTrue(second.slot)
      expect([first.warm, second.warm]).toEqual([true, true])
      expect([await count('warm'), await count('cold')]).toEqual([2, 0])
    })

    test('after two commands in quick succession, slots for later commands are opened immediately', async () => {
      const { driver, counter } = counting(slowly())
      const { pool } = makePool({ driver })
      for (let count = 0; count < 2; count++) pool.adopt('sbx_a', pod, await openSlot(sandboxes.driver, pod))
      const first = await pool.take('sbx_a', pod)
      const second = await pool.take('sbx_a', pod)
      expect(counter.starts).toBeGreaterThan(0)
      first.slot.close()
      second.slot.close()
    })

    test('a command waits for a slot that is being opened, and does not open another', async () => {
      const { driver, counter } = counting(slowly())
      const { pool, count } = makePool({ driver })
      pool.prepare('sbx_a', pod)
      const taken = pool.take('sbx_a', pod)
      expect(counter.starts).toBe(1)
      const { slot, warm } = await taken
      expect(warm).toBe(false)
      expect(await count('cold')).toBe(1)
      await runTrue(slot)
    })

    test('a command does not wait for an unresponsive slot, which is kept if it responds later', async () => {
      const { driver } = sandboxes
      const { promise: later, resolve: proceed } = Promise.withResolvers<void>()
      const answers = [later, Promise.resolve()]
      const silent = slowly({
        async start(...args) {
          await (answers.shift() ?? new Promise(() => {}))
          return await driver.start(...args)
        },
      })
      const { pool } = makePool({ driver: silent, silentMs: 200 })
      pool.prepare('sbx_a', pod)
      await eventually(() => answers.length === 1, 10_000)
      const { slot } = await pool.take('sbx_a', pod)
      await runTrue(slot)
      await eventually(async () => (await waiting()) === 0, 10_000)
      proceed()
      await eventually(async () => (await waiting()) === 1, 10_000)
    })

    test('a command fails if two slots do not respond', async () => {
      let starts = 0
      const mute = slowly({
        async start() {
          starts += 1
          await new Promise((resolve) => setTimeout(resolve, 1_000))
          throw new DriverUnavailable('no word')
        },
      })
      const { pool } = makePool({ driver: mute, silentMs: 100 })
      await expect(pool.take('sbx_a', pod)).rejects.toThrow('no word')
      expect(starts).toBe(2)
    })

    test('ten concurrent commands receive one slot each', async () => {
      const { pool } = makePool({ driver: slowly() })
      const taken = await Promise.all(Array.from({ length: 10 }, () => pool.take('sbx_a', pod)))
      expect(new Set(taken.map(({ slot }) => slot.pid)).size).toBe(10)
      await Promise.all(taken.map(({ slot }) => runTrue(slot)))
      await eventually(async () => (await waiting()) === 3, 10_000)
    })

    test('a slot whose shell was killed from inside the sandbox is not used for a command', async () => {
      const { pool } = makePool({ driver: slowly() })
      const doomed = await openSlot(sandboxes.driver, pod)
      pool.adopt('sbx_a', pod, doomed)
      await run(sandboxes.driver, pod, shell(`kill -KILL ${doomed.pid}`))
      await doomed.closed
      const { slot, warm } = await pool.take('sbx_a', pod)
      expect({ isDoomed: slot === doomed, warm }).toEqual({ isDoomed: false, warm: false })
      await runTrue(slot)
    })

    test('the slot pool closes the slots of a destroyed sandbox, including one that is being opened', async () => {
      const { pool } = makePool({ driver: slowly() })
      pool.prepare('sbx_a', pod)
      pool.drop('sbx_a')
      expect(pool.has('sbx_a')).toBe(false)
      pool.adopt('sbx_b', pod, await openSlot(sandboxes.driver, pod))
      pool.drop('sbx_b')
      await eventually(async () => (await waiting()) === 0, 10_000)
    })

    test('the slot pool closes the slots of an idle sandbox', async () => {
      const { pool } = makePool({ driver: slowly(), idleMs: 300 })
      const slot = await openSlot(sandboxes.driver, pod)
      pool.adopt('sbx_a', pod, slot)
      await slot.closed
      expect(pool.has('sbx_a')).toBe(false)
    })

    test('the slot pool closes the oldest slots when there are too many', async () => {
      const { pool } = makePool({ driver: slowly(), max: 2 })
      const slots: Slot[] = []
      for (const id of ['sbx_a', 'sbx_b', 'sbx_c']) {
        const slot = await openSlot(sandboxes.driver, pod)
        slots.push(slot)
        pool.adopt(id, pod, slot)
      }
      await slots[0]!.closed
      expect((await pool.take('sbx_b', pod)).slot).toBe(slots[1])
      expect((await pool.take('sbx_c', pod)).slot).toBe(slots[2])
      for (const slot of slots) slot.close()
    })

    test('the slot pool pre-opens at most four slots concurrently', async () => {
      let starts = 0
      let starting = 0
      let most = 0
      const driver = slowly({
        async start(...args) {
          starts += 1
          starting += 1
          most = Math.max(most, starting)
          return await sandboxes.driver.start(...args).finally(() => {
            starting -= 1
          })
        },
      })
      const { pool } = makePool({ driver, silentMs: 3_600_000 })
      for (let index = 0; index < 12; index++) pool.prepare(`sbx_${index}`, pod)
      const { slot } = await pool.take('sbx_in_a_hurry', pod)
      await runTrue(slot)
      // All 13 sandboxes get a slot, and the slot of the command is replaced. A second replacement is opened only
      // within the 3 s for which commands are counted, and on a busy node the queue takes longer.
      await eventually(() => starts >= 14 && starting === 0, 20_000)
      expect(most).toBe(5)
    })

    test('after pre-opening a slot fails, the slot pool retries only when the sandbox is used', async () => {
      let tries = 0
      const driver = slowly({
        start: async () => {
          tries += 1
          throw new DriverUnavailable('away')
        },
      })
      const { pool } = makePool({ driver })
      pool.prepare('sbx_a', pod)
      await eventually(() => !pool.has('sbx_a'), 5_000)
      expect(tries).toBe(1)
      await expect(pool.take('sbx_a', pod)).rejects.toThrow('away')
    })

    test('taking a slot in a deleted pod fails', async () => {
      const { pool } = makePool({ driver: slowly() })
      const doomed = await sandboxes.make()
      const slot = await openSlot(sandboxes.driver, doomed)
      pool.adopt('sbx_a', doomed, slot)
      await sandboxes.driver.delete(doomed)
      await slot.closed
      await expect(pool.take('sbx_a', doomed)).rejects.toThrow(PodGone)
      await eventually(() => !pool.has('sbx_a'), 5_000)
    })

    test('a sandbox whose pod was replaced never gets a slot from the old pod', async () => {
      const { pool } = makePool({ driver: slowly() })
      const old = await openSlot(sandboxes.driver, pod)
      pool.adopt('sbx_a', { name: pod.name, uid: 'the one before' }, old)
      const { slot, warm } = await pool.take('sbx_a', pod)
      expect({ isOld: slot === old, warm }).toEqual({ isOld: false, warm: false })
      await old.closed
      await runTrue(slot)
    })
  })
})

test('when a worker leaves, only the sandboxes whose slots it owned get a new slot owner', () => {
  const workers = Array.from({ length: 8 }, (_, index): WorkerEntry => {
    return { id: `worker_${index}`, url: '', driverProblem: null }
  })
  const ids = Array.from({ length: 800 }, (_, index) => `sbx_${index}`)
  const holderOf = (id: string, among: WorkerEntry[]) => inOrderFor(id, among)[0]!.id
  const before = ids.map((id) => holderOf(id, workers))
  expect(ids.map((id) => holderOf(id, workers.toReversed()))).toEqual(before)
  const after = ids.map((id) => holderOf(id, workers.slice(1)))
  expect(after.filter((id, index) => before[index] !== 'worker_0' && id !== before[index])).toEqual([])
  for (const { id } of workers) expect(before.filter((holder) => holder === id).length).toBeGreaterThan(50)
})

test('a worker that cannot reach the cluster owns no slots while another worker can reach the cluster', () => {
  const workers = [
    { id: 'worker_a', url: '', driverProblem: 'away' },
    { id: 'worker_b', url: '', driverProblem: null },
  ]
  for (let index = 0; index < 50; index++) expect(inOrderFor(`sbx_${index}`, workers)[0]!.id).toBe('worker_b')
})
