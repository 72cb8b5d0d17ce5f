/** Commands on a cluster that lose their client, connection, slot or pod. */
import { describe, expect, test } from 'vitest'
import { podName } from '../../shared/data/ids.ts'
import { Refusal } from '../support/account.ts'
import { hasCluster } from '../support/cluster.ts'
import { readEvents } from '../support/events.ts'
import { inside } from '../support/sandbox-commands.ts'
import { shareSandbox } from '../support/shared.ts'

const events = { accept: 'text/event-stream' }

describe.skipIf(!hasCluster)('lost commands on a cluster', () => {
  const { world, alice, params, countOf } = shareSandbox({
    driver: 'kubernetes',
    wire: true,
    env: { QUOTA_CONCURRENT_SANDBOXES: '5' },
  })

  /** Starts one command per kind of stream, and resolves once all are running. Returns their results. */
  async function runOnEveryStream(id: string, at = params) {
    const command = `echo up >>up-${id}; echo up; exec sleep ${id}`
    const json = alice.call('execCommand', { params: at, body: { command } })
    const own = readEvents(
      await alice.open('execCommand', { params: at, headers: events, body: { command } }),
    )
    await own.until('stdout')
    const other = readEvents(
      await alice.open('streamExec', { params: { ...at, exec_id: own.seen[0]!.data.id } }),
    )
    await other.until('stdout')
    const box = inside(alice, at)
    await world.eventually(async () => (await box.sh(`wc -l <up-${id}`)).stdout === '2\n', 10_000)
    return [
      json.then(({ body }) => body),
      ...[own, other].map(async (stream) => (await stream.rest()).at(-1)!.data),
    ]
  }
  /** @returns the result of each command, and the milliseconds until the last one ended */
  async function endsOf(streams: Promise<{ status: string; reason: string | null }>[]) {
    const started = performance.now()
    const ends = (await Promise.all(streams)).map(({ status, reason }) => ({ status, reason }))
    return { ends, ms: performance.now() - started }
  }

  async function deletePod({ id }: { id: string }) {
    const { api, namespace } = world.cluster!
    await api.deleteNamespacedPod({ name: podName(id), namespace })
  }
  async function killMainProcess(at: { id: string }) {
    await inside(alice, at).sh(
      'for p in /proc/[0-9]*; do grep -q "slee[p]" $p/cmdline && grep -q 2147483647 $p/cmdline && kill -KILL "$(basename $p)"; done',
    )
  }

  test('commands leave no processes in the pod after 200 client disconnects', async () => {
    // A node allows about 256 processes per pod, including the runtime's own processes for each exec.
    const others = Array.from({ length: 3 }, async () => ({
      id: (await alice.call('createSandbox')).body.id,
    }))
    const sandboxes = [params, ...(await Promise.all(others))]
    const connections = world.wire!.connections()
    const body = { command: 'echo up; exec sleep 600' }
    const leaveEvents = async (at: typeof params) => {
      const answer = await alice.open('execCommand', { params: at, headers: events, body }).catch(goOnIfBusy)
      if (!answer) return
      const stream = readEvents(answer)
      await stream.until('stdout')
      await stream.leave()
    }
    // Disconnects before the command has a slot, while it starts, or while it runs.
    const leaveJson = async (at: typeof params, ms: number) => {
      const signal = AbortSignal.timeout(ms)
      await expect(alice.call('execCommand', { params: at, body, signal })).rejects.toThrow(/abort/)
    }
    // A busy node rejects requests after 5 s. The rejected commands have not run.
    let busy = 0
    const goOnIfBusy = (error: unknown) => {
      if (!(error instanceof Refusal) || error.code !== 'unavailable') throw error
      busy += 1
    }
    const leaving = Array.from({ length: 200 }, (_, index) => index)
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let index = leaving.pop(); index !== undefined; index = leaving.pop()) {
          const at = sandboxes[index % 4]!
          await (index % 8 < 4 ? leaveEvents(at) : leaveJson(at, index * 2))
        }
      }),
    )
    for (const at of sandboxes) {
      const { countOf } = inside(alice, at)
      await world.eventually(async () => (await countOf('slee[p] 600')) === 0, 10_000)
      // Counts the slots of the next commands and of this one. The previous check's shell may still be
      // running.
      await world.eventually(async () => (await countOf('IFS[=] read')) <= 4, 10_000)
    }
    await world.eventually(() => world.wire!.connections() <= connections + sandboxes.length * 4, 10_000)
    const rows = await world.db.query<{ status: string; reason: string | null }>('select * from exec')
    expect(rows.filter(({ status }) => status !== 'exited' && status !== 'killed')).toEqual([])
    // The remaining clients left before their commands started.
    expect(rows.filter(({ reason }) => reason === 'its client disconnected').length).toBeGreaterThan(
      100 - busy,
    )
    await Promise.all(sandboxes.slice(1).map((at) => alice.call('destroySandbox', { params: at })))
  })

  test.each([
    ['an administrator deleted the pod', 'Deleted', deletePod],
    ["the pod's main process was killed", 'Error (exit code 137)', killMainProcess],
  ] as const)('every stream reports within five seconds that %s', async (_, detail, killPod) => {
    const at = { id: (await alice.call('createSandbox')).body.id }
    const streams = await runOnEveryStream('601', at)
    await killPod(at)
    const { ends, ms } = await endsOf(streams)
    expect(ms).toBeLessThan(5_000)
    expect(ends).toEqual(streams.map(() => ({ status: 'killed', reason: 'pod_failed' })))
    const { body } = await alice.call('getSandbox', { params: at })
    expect(body).toMatchObject({
      state: 'destroyed',
      destroy_reason: 'pod_failed',
      destroy_detail: detail,
    })
  })

  test('when the cluster connection breaks, a command is reported as lost within 5 s', async () => {
    const streams = await runOnEveryStream('602')
    expect(await countOf('slee[p] 602')).toBe(2)
    world.wire!.cut()
    const { ends, ms } = await endsOf(streams)
    expect(ms).toBeLessThan(5_000)
    for (const end of ends) {
      expect(end).toEqual({ status: 'lost', reason: expect.stringMatching(/\S/) })
    }
    world.wire!.repair()
    await world.eventually(async () => (await countOf('slee[p] 602').catch(() => 1)) === 0, 20_000)
  })
})
