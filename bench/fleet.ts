/**
 * Measures Sandlot with hundreds and thousands of live sandboxes. Sandlot and the API server are real, and
 * kwok simulates the pods.
 * For each size: a reconciler pass, requests to the API server, a dead node, an outage of all workers,
 * creation rate.
 *   go install sigs.k8s.io/kwok/cmd/kwok@v0.7.0
 *   KUBECONFIG=… FLEET_CERT=… FLEET_KEY=… [KWOK=…] [FLEET_SIZES=100,1000] npm run bench -- fleet
 * KWOK is the path to kwok. FLEET_CERT and FLEET_KEY are the paths to a localhost certificate and its key.
 * The cluster's certificate authority must have signed the certificate. The API server must run on this
 * machine.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { KubeConfig } from '@kubernetes/client-node'
import { root } from '../scripts/root.mjs'
import { type Database, openDatabase } from '../shared/data/database.ts'
import { countByState } from '../shared/data/sandbox-pods.ts'
import { unlessGone } from '../test/support/unless-gone.ts'
import { makeAccounts } from './accounts.ts'
import { percentile, table } from './figures.ts'
import {
  cpuSeconds,
  openServer,
  readCounts,
  readMachine,
  readSweeps,
  residentMebibytes,
  since,
} from './gauges.ts'
import { type Fleet, openFleet, podsOfNode } from './kwok.ts'
import { makeNamespace } from './namespace.ts'
import { type Findings, kubeconfig, type Part, type Row } from './part.ts'
import { addressOf, type Stack, startStack } from './stack.ts'

const sizes = (process.env.FLEET_SIZES ?? '100,1000,5000').split(',').map(Number)
const workerCount = 2
/**
 * Sandboxes are created `atOnce` at a time, except for the last `offered` of each size. These are requested
 * at a rate of `aSecond` per second.
 */
const creates = { atOnce: 32, offered: 200, aSecond: 200 }
const sandboxesOfAccount = 100
const reconcileIntervalSeconds = 10
/** Milliseconds. `settle`: time after a change until unused slots close. `steady`: observation period. */
const ms = { settle: 62_000, steady: 31_000 }
/** Number of pods on the node that dies. Fleets smaller than twice this number skip the test. */
const deaths = podsOfNode

export const fleet: Part = {
  title: 'A fleet of simulated pods',
  needsCluster: true,
  needs: ['FLEET_CERT', 'FLEET_KEY'],
  async measure() {
    await using undo = new AsyncDisposableStack()
    const namespace = undo.use(await makeNamespace(kubeconfig()))
    const folder = mkdtempSync(join(tmpdir(), 'sandlot-bench-'))
    undo.defer(() => rmSync(folder, { recursive: true, force: true }))
    const admin = new KubeConfig()
    admin.loadFromFile(kubeconfig())
    const env = {
      ...namespace.env,
      RECONCILE_INTERVAL_SECONDS: String(reconcileIntervalSeconds),
      QUOTA_SANDBOX_HOURS_PER_MONTH: '1000000',
      NODE_OPTIONS: `--import=${join(root, 'bench/count-requests.ts')}`,
      FLEET_SERVER: admin.getCurrentCluster()!.server,
      FLEET_COUNTS: folder,
    }
    let nodes: Fleet | undefined
    const stack = await startStack(env, {
      workers: workerCount,
      prepare: async ({ watchdog }) => {
        nodes = await openFleet({
          kubeconfig: kubeconfig(),
          namespace: namespace.env.SANDBOX_NAMESPACE!,
          nodeCount: Math.ceil(Math.max(...sizes) / podsOfNode) + sizes.length + 2,
          folder,
          watchdog,
        })
        undo.use(nodes)
      },
    })
    undo.use(stack)
    const db = openDatabase(stack.services.databaseUrl, { connections: 2 })
    undo.defer(() => db.close())
    const keys = await makeAccounts(stack, Math.ceil(Math.max(...sizes) / sandboxesOfAccount))
    const world: World = {
      stack,
      db,
      keys,
      nodes: nodes!,
      server: await openServer(admin),
      folder,
      killed: 0,
    }
    const found: Measured[] = []
    for (const size of sizes) {
      try {
        found.push(await measureSize(world, size))
      } catch (error) {
        // Reports smaller sizes even if larger ones exceed the machine's capacity.
        if (found.length === 0) throw error
        const what = `${size.toLocaleString('en')} sandboxes can be measured: ${(error as Error).message}`
        const { verdicts = [], ...rest } = present(found)
        return { ...rest, verdicts: [...verdicts, { what, met: false }] }
      }
    }
    return present(found)
  },
}

interface World {
  stack: Stack
  db: Database
  keys: string[]
  nodes: Fleet
  server: Awaited<ReturnType<typeof openServer>>
  folder: string
  killed: number
}

type Measured = Awaited<ReturnType<typeof measureSize>>

async function measureSize(world: World, size: number) {
  const made = await grow(world, size)
  await sleep(ms.settle)
  const steady = await lookOn(world)
  if (steady.ended > 0) throw new Error(`${steady.ended} sandboxes ended without a request`)
  const start = await startCold(world)
  const death = size >= 2 * deaths ? await die(world) : undefined
  return { size, made, steady, start, death }
}

async function grow({ stack, db, keys }: World, size: number) {
  const before = await countReady(db)
  const offeredCount = Math.min(creates.offered, size - before)
  let refusals: Record<string, number> = {}
  let next = 0
  const url = `${addressOf(stack.apis[0]!)}/v1/sandboxes`
  const createOne = async () => {
    const headers = {
      authorization: `Bearer ${keys[next++ % keys.length]}`,
      'content-type': 'application/json',
    }
    const began = performance.now()
    const answer = await fetch(url, { method: 'POST', headers, body: '{}' }).catch(() => undefined)
    await answer?.arrayBuffer().catch(() => {})
    const took = performance.now() - began
    if (answer?.status === 201) return took
    const status = String(answer?.status ?? 'no answer')
    refusals[status] = (refusals[status] ?? 0) + 1
  }
  const measured = await readMachine()
  const began = performance.now()
  let left = size - before - offeredCount
  const closed = left
  const closedTimes: number[] = []
  await Promise.all(
    Array.from({ length: creates.atOnce }, async () => {
      while (left-- > 0) closedTimes.push((await createOne()) ?? Number.NaN)
    }),
  )
  const closedSeconds = (performance.now() - began) / 1000
  const offeredFrom = performance.now()
  const offered: Promise<number | undefined>[] = []
  while (offered.length < offeredCount) {
    await sleep(Math.max(0, offeredFrom + (offered.length * 1000) / creates.aSecond - performance.now()))
    offered.push(createOne())
  }
  const offeredTimes = (await Promise.all(offered)).filter((took) => took !== undefined)
  const offeredSeconds = (performance.now() - offeredFrom) / 1000
  const machine = since(measured, await readMachine())
  const refused = refusals
  refusals = {}
  await untilNoneStarts(db)
  // Replaces failed sandboxes, so that the size is exact.
  for (let missing = 1; missing > 0; ) {
    missing = size - (await countReady(db))
    await Promise.all(Array.from({ length: Math.min(creates.atOnce, missing) }, createOne))
    await untilNoneStarts(db)
  }
  return {
    closed: { count: closed, aSecond: closed / closedSeconds, ms: closedTimes.filter(Number.isFinite) },
    offered: { count: offeredCount, aSecond: offeredTimes.length / offeredSeconds, ms: offeredTimes },
    refusals: refused,
    machine,
  }
}

async function countReady(db: Database): Promise<number> {
  return (await countByState(db)).find(({ state }) => state === 'ready')?.count ?? 0
}

async function untilNoneStarts(db: Database): Promise<void> {
  while ((await countByState(db)).some(({ state }) => state === 'starting')) await sleep(250)
}

async function lookOn({ stack, server, folder, db }: World) {
  const { workers, apis } = stack
  const look = async () => ({
    at: performance.now(),
    cpu: workers.map(cpuSeconds).reduce((a, b) => a + b),
    counts: readCounts(folder, workers),
    server: await server.read(),
    machine: await readMachine(),
  })
  const living = await countReady(db)
  const before = await look()
  const reconcileActions: number[] = []
  let last = await readSweeps(workers)
  while (performance.now() < before.at + ms.steady) {
    await sleep(1_000)
    const now = await readSweeps(workers)
    if (now.count > last.count)
      reconcileActions.push(((now.seconds - last.seconds) / (now.count - last.count)) * 1000)
    last = now
  }
  const after = await look()
  const seconds = (after.at - before.at) / 1000
  const requests = Object.fromEntries(
    Object.entries(after.counts)
      .map(([kind, count]) => [kind, (count - (before.counts[kind] ?? 0)) / seconds] as const)
      .filter(([, rate]) => rate > 0)
      .sort(([, a], [, b]) => b - a),
  )
  return {
    ended: living - (await countReady(db)),
    reconcileActions,
    requests,
    requestsASecond: Object.values(requests).reduce((a, b) => a + b, 0),
    workerMiB: workers.map(residentMebibytes),
    apiMiB: apis.map(residentMebibytes),
    workerCpu: (after.cpu - before.cpu) / seconds,
    server: {
      cpu: (after.server.cpuSeconds - before.server.cpuSeconds) / seconds,
      requestsASecond: (after.server.requests - before.server.requests) / seconds,
      mebibytes: after.server.mebibytes,
    },
    machine: since(before.machine, after.machine),
  }
}

/** Stops all workers until a reconciler pass is due, then starts them again. */
async function startCold({ stack }: World) {
  for (const { pid } of stack.workers) process.kill(pid, 'SIGTERM')
  for (const { pid } of stack.workers) while (unlessGone(() => process.kill(pid, 0))) await sleep(50)
  await sleep(reconcileIntervalSeconds * 1000)
  const began = performance.now()
  const start = () => stack.start('workers/main.ts', ['listening', 'working'])
  const started = await Promise.all(Array.from({ length: workerCount }, start))
  const workingSeconds = (performance.now() - began) / 1000
  stack.workers.splice(0, workerCount, ...started)
  while ((await readSweeps(started)).count === 0) await sleep(20)
  return { workingSeconds, sweptSeconds: (performance.now() - began) / 1000 }
}

async function die(world: World) {
  const { db, nodes, folder, stack } = world
  const [before] = await db.query<{ failed: number }>(countFailed)
  const countsBefore = readCounts(folder, stack.workers)
  const began = performance.now()
  const seconds = () => (performance.now() - began) / 1000
  const expected = before!.failed + (await nodes.kill(nodes.nodes[world.killed++]!))
  const deletedSeconds = seconds()
  while ((await db.query<{ failed: number }>(countFailed))[0]!.failed < expected) await sleep(20)
  const noticedSeconds = seconds()
  // Waits so that the counts include the requests that check whether the pods are gone.
  await sleep(2 * reconcileIntervalSeconds * 1000)
  const counts = readCounts(folder, stack.workers)
  const requests = Object.fromEntries(
    Object.entries(counts).map(([kind, count]) => [kind, count - (countsBefore[kind] ?? 0)]),
  )
  const followed = Object.values(requests).reduce((a, b) => a + b, 0)
  return { count: expected - before!.failed, deletedSeconds, noticedSeconds, requests, followed }
}

const countFailed = `select count(*)::int as failed from sandbox where destroy_reason = 'pod_failed'`

/**
 * Expected requests per second. Each worker sends one ping per second, and four requests and one or two
 * watches per pass.
 * In total, the workers send one paged list per pass.
 */
const explainedASecond = (size: number) =>
  workerCount * (1 + 4 / reconcileIntervalSeconds + 4 / 25) +
  (Math.floor(size / podsOfNode) + 1) / reconcileIntervalSeconds

function present(found: Measured[]): Findings {
  const named = ({ size }: Measured) => `${size.toLocaleString('en')} sandboxes`
  const rows = found.flatMap((each): Row[] => {
    const row = (what: string, unit: string, values: number[]) => ({
      what: `${what}, ${named(each)}`,
      ours: true,
      unit,
      values,
    })
    const { made, steady, start, death } = each
    return [
      row('a reconciler pass', 'ms per pass', steady.reconcileActions),
      row('requests of workers to the API server', 'requests per second', [steady.requestsASecond]),
      row('worker', 'MiB', steady.workerMiB),
      row('API', 'MiB', steady.apiMiB),
      row('start until all workers accept work', 's', [start.workingSeconds]),
      row('start until the first reconciler pass', 's', [start.sweptSeconds]),
      ...(death ? [row(`death of ${death.count} pods, until noticed`, 's', [death.noticedSeconds])] : []),
      row(`create, at ${creates.aSecond} requests per second`, 'ms per create', made.offered.ms),
      row('creates', 'creates per second', [made.offered.aSecond]),
    ]
  })
  const order = ['ms per pass', 'requests per second', 'MiB', 's', 'ms per create', 'creates per second']
  const largest = found.at(-1)!
  const before = found.at(-2)
  const passOf = ({ steady, size }: Measured) => percentile(steady.reconcileActions, 0.5) / size
  const fixed = (value: number, digits = 1) => value.toFixed(digits)
  const explained = explainedASecond(largest.size)
  return {
    rows: order.flatMap((unit) => rows.filter((row) => row.unit === unit && row.values.length > 0)),
    verdicts: [
      {
        what: `the workers send no more requests to the API server than events and intervals explain, ${fixed(explained)} per second with ${named(largest)}: ${fixed(largest.steady.requestsASecond)}`,
        met: largest.steady.requestsASecond <= explained * 1.1,
      },
      ...(before
        ? [
            {
              what: `a reconciler pass takes no longer per sandbox with ${named(largest)} than with ${named(before)}: ${fixed(1000 * passOf(largest), 0)} and ${fixed(1000 * passOf(before), 0)} µs`,
              met: passOf(largest) <= passOf(before) * 1.2,
            },
          ]
        : []),
      ...found.flatMap(({ death, size }) => {
        if (!death) return []
        // The observed time also includes regular requests.
        const usual = explainedASecond(size) * (death.noticedSeconds + 2 * reconcileIntervalSeconds)
        const each = (death.followed - usual) / death.count
        return [
          {
            what: `at most 3 requests for each pod that died, with ${size} sandboxes: ${fixed(each)}`,
            met: each <= 3,
          },
        ]
      }),
    ],
    details: table(
      ['', ...found.map(named)],
      [
        [
          'creates per second, 32 concurrent',
          ...found.map(({ made }) => (made.closed.count ? fixed(made.closed.aSecond) : 'none')),
        ],
        ['load and CPU usage during creates', ...found.map(({ made }) => words(made.machine))],
        [
          'creates without a 201',
          ...found.map(({ made }) => JSON.stringify(made.refusals).replaceAll(/[{}"]/g, '') || '0'),
        ],
        ['idle: load and CPU usage', ...found.map(({ steady }) => words(steady.machine))],
        [
          'idle: CPU of all workers, ms per second',
          ...found.map(({ steady }) => fixed(steady.workerCpu * 1000)),
        ],
        ['API server: CPU, ms per second', ...found.map(({ steady }) => fixed(steady.server.cpu * 1000, 0))],
        [
          'API server: requests of all clients per second',
          ...found.map(({ steady }) => fixed(steady.server.requestsASecond)),
        ],
        ['API server: MiB', ...found.map(({ steady }) => fixed(steady.server.mebibytes, 0))],
        ['requests of workers per second', ...found.map(({ steady }) => kinds(steady.requests, 2))],
        [
          'pods that died: seconds until deleted',
          ...found.map(({ death }) => (death ? fixed(death.deletedSeconds) : 'none')),
        ],
        [
          'requests of workers about these pods',
          ...found.map(({ death }) => (death ? kinds(death.requests, 0) : 'none')),
        ],
      ],
    ),
    notes: [
      `${workerCount} workers, one API, a reconciler pass every ${reconcileIntervalSeconds} s, ${sandboxesOfAccount} sandboxes per account. kwok simulates the nodes and the life cycle of the pods; an exec is a real shell on this machine, through the real API server. A webhook of the benchmark assigns each pod to a node in place of the scheduler, which binds 50 pods a second by default.`,
      `For each size, the first sandboxes are created ${creates.atOnce} at a time, and the last ${creates.offered} at a rate of ${creates.aSecond} per second. Idle figures cover ${ms.steady / 1000} s, starting ${ms.settle / 1000} s after that. Requests are counted in the workers, because the API server does not report which client sent them. A start of all workers begins when a reconciler pass is due. The pods of one node are deleted by force, one after the other, as the API server does it; their death counts as noticed when all rows say \`pod_failed\`.`,
    ],
  }
}

const words = ({ load, busy }: { load: number; busy: number }) =>
  `${load.toFixed(1)}, ${Math.round(busy * 100)} %`

const kinds = (counts: Record<string, number>, digits: number) =>
  Object.entries(counts)
    .filter(([, count]) => count >= 0.5 * 10 ** -digits)
    .map(([kind, count]) => `${count.toFixed(digits)} ${kind}`)
    .join('; ')
