/** Commands are reported as lost before they start, and an API process is frozen. */
import { expect, test } from 'vitest'
import { bytesOf, readEvents } from '../support/events.ts'
import { isSoak } from '../support/eventually.ts'
import { shareSandbox } from '../support/shared.ts'

const { world, alice, params, sh } = shareSandbox()

async function locked<T>(table: string, work: (release: () => void) => Promise<T>): Promise<T> {
  const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const lock = world.db.transaction(async (db) => {
    await db.query(`lock table ${table}`)
    held.resolve()
    await release.promise
  })
  try {
    await Promise.race([held.promise, lock])
    return await work(release.resolve)
  } finally {
    release.resolve()
    await lock
  }
}

/** Statements of this kind that wait for a lock. */
const waiting = async (statement: string) => {
  const [row] = await world.db.query<{ count: string }>(
    `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
     and query ~ ?`,
    [statement],
  )
  return Number(row!.count)
}

/**
 * Starts one command of each kind. The gate starts one, because statements wait for a lock for at most 2 s.
 * @returns the exit status that each client received
 */
function startAll(name: string): Promise<{ id: string; status: string }>[] {
  const start = (kind: string, more: object = {}) =>
    alice.call('execCommand', { params, body: { command: `touch ${name}-${kind}`, ...more } })
  const events = async () => {
    const body = { command: `touch ${name}-events` }
    const headers = { accept: 'text/event-stream' }
    const seen = await readEvents(await alice.open('execCommand', { params, headers, body })).rest()
    return seen.at(-1)!.data
  }
  if (!isSoak) return [start('json').then(({ body }) => body)]
  const answers = [start('json'), start('background', { background: true }), start('tty', { tty: true })]
  return [...answers.map(async (answer) => (await answer).body), events()]
}

const moments = [
  { when: 'before', table: 'secret', mode: 'access exclusive', statement: 'sealed_value.* from "secret"' },
  { when: 'while', table: 'exec', mode: 'exclusive', statement: 'insert into exec ' },
]
const title =
  "never runs a command reported as lost because its worker froze $when the command's row was written"

test.each(moments)(title, async ({ table, mode, statement }) => {
  const [worker] = world.workers
  const told = await locked(`${table} in ${mode} mode`, async (release) => {
    const answers = startAll(table)
    // At most three statements of an account run concurrently.
    const most = table === 'exec' ? Math.min(3, answers.length) : answers.length
    await world.eventually(async () => (await waiting(statement)) >= most, 10_000)
    worker!.signal('SIGSTOP')
    try {
      // PostgreSQL finishes a frozen client's statements, except those that exceed the lock timeout.
      release()
      return await Promise.all(answers)
    } finally {
      release()
      worker!.signal('SIGCONT')
    }
  })
  expect(told.map(({ status }) => status)).toEqual(told.map(() => 'lost'))
  // The API considers the worker lost until the worker answers again.
  await world.eventually(() => sh('true').catch(() => undefined), 10_000)
  expect(await sh('sleep 1; ls')).toMatchObject({ status: 'exited', stdout: '' })
  const { data } = (await alice.call('listExecs', { params })).body
  for (const { id } of told) expect(data.find((row) => row.id === id)).toMatchObject({ status: 'lost' })
  await world.eventually(async () => {
    const left = await world.db.query("select from exec where is_left or status = 'running'")
    return left.length === 0
  }, 10_000)
})

// test/api/worker-health.test.ts tests the deterministic part.
test.runIf(isSoak)(
  'an API process frozen together with a worker does not report commands as lost',
  async () => {
    const [worker] = world.workers
    const [api] = world.apis
    const command = 'echo begun; until test -e go; do sleep 0.1; done; echo finished'
    const headers = { accept: 'text/event-stream' }
    const streams = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const stream = readEvents(await alice.open('execCommand', { params, headers, body: { command } }))
        await stream.until('stdout')
        return stream
      }),
    )
    // Like a suspended machine: an RPC is open when both processes freeze.
    worker!.signal('SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    api!.signal('SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    api!.signal('SIGCONT')
    worker!.signal('SIGCONT')
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    await sh('touch go')
    for (const stream of streams) {
      const events = await stream.rest()
      expect(events.at(-1)).toMatchObject({ event: 'exit', data: { status: 'exited', exit_code: 0 } })
      expect(bytesOf(events, 'stdout').toString()).toBe('begun\nfinished\n')
    }
  },
)
