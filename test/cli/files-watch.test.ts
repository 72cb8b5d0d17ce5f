/** `sandlot files watch`: its output, outages and exit codes. */
import { expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import type { Ran } from './client.ts'
import { openLine } from './line.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld()
const users = makeUsers(world)
const user = shareSession(users)

interface Watching {
  by?: Pick<typeof user, 'run'>
  env?: Record<string, string>
  /** Called after each output, with everything printed so far and a function that types Ctrl-C. */
  onOutput(printed: { stdout: string; stderr: string }, interrupt: () => void): void
}

function watching(args: string[], { by = user, env = {}, onOutput }: Watching): Promise<Ran> {
  const printed = { stdout: '', stderr: '' }
  return by.run(['files', 'watch', ...args], {
    env,
    onStart(child) {
      for (const stream of ['stdout', 'stderr'] as const)
        child[stream]!.on('data', (chunk) => {
          printed[stream] += chunk
          onOutput(printed, () => child.kill('SIGINT'))
        })
    },
  })
}

const objectsIn = ({ stdout }: Ran) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

const once = (act: () => unknown) => {
  let isDone = false
  return () => {
    if (!isDone) act()
    isDone = true
  }
}

test.concurrent('`files watch` prints one JSON object per event, until Ctrl-C', async () => {
  await user.run(['files', 'mkdir', 'json/sub'])
  const change = once(() => user.run(['files', 'create', 'json/sub/new', '--content', 'x']))
  const ran = await watching(['json', '--depth', '2', '--json=event,path,size,entries'], {
    onOutput({ stdout }, interrupt) {
      if (stdout.includes('created')) interrupt()
      else change()
    },
  })
  expect(ran.code).toBe(130)
  const [start, created, error] = objectsIn(ran)
  expect(start).toEqual({ event: 'start', path: '/workspace/json', size: null, entries: 1 })
  expect(created).toEqual({ event: 'created', path: 'json/sub/new', size: 1, entries: null })
  expect(error.error).toMatchObject({ code: 'interrupted' })
})

test.concurrent('`files watch` prints one line per change', async () => {
  await user.run(['files', 'mkdir', 'text'])
  let isOver = false
  const ran = watching(['text'], {
    onOutput({ stdout }, interrupt) {
      isOver = stdout !== ''
      if (isOver) interrupt()
    },
  })
  // Without --json, nothing shows when the watch has started.
  for (let count = 0; !isOver; count++) await user.run(['files', 'create', `text/${count}`, '--content', ''])
  expect((await ran).stdout).toMatch(/^created text\/\d+\n/)
  expect((await ran).stderr).toBe('sandlot: Interrupted.\n')
})

test.concurrent('`files watch` reconnects and reports that changes may be missing', async () => {
  await using line = await openLine(world.url())
  await user.run(['files', 'mkdir', 'cut'])
  const hold = once(line.hold)
  const repair = once(line.repair)
  const change = once(() => user.run(['files', 'create', 'cut/after', '--content', '']))
  const ran = await watching(['cut', '--json=event,path'], {
    env: user.home.through(line.url),
    onOutput({ stdout, stderr }, interrupt) {
      if (stdout.includes('start')) hold()
      if (stderr.endsWith('Reconnecting; press Ctrl-C to exit.\n')) repair()
      if (stdout.split('start').length === 3) change()
      if (stdout.includes('cut/after')) interrupt()
    },
  })
  expect(ran.stderr).toMatch(
    /^sandlot: .+ Reconnecting; press Ctrl-C to exit\.\nsandlot: reconnected\. Changes in the meantime are not printed\.\nsandlot: Interrupted\.\n$/,
  )
  expect(
    objectsIn(ran)
      .map(({ event }) => event)
      .slice(0, 3),
  ).toEqual(['start', 'start', 'created'])
})

test.concurrent('`files watch` exits with an error when its folder or session is deleted', async () => {
  const other = await users.newSession()
  await other.run(['files', 'mkdir', 'gone'])
  const removeFolder = once(() => other.run(['files', 'rm', '--recursive', 'gone']))
  const folder = await watching(['gone', '--json'], { by: other, onOutput: removeFolder })
  expect(folder).toMatchObject({ code: 3, stderr: 'sandlot: No file exists at this path.\n' })
  expect(await other.run(['files', 'watch', 'gone'])).toMatchObject({ code: 3, stdout: '' })
  const end = once(() => other.run(['session', 'rm', '--yes', other.id]))
  const session = await watching(['--json'], { by: other, onOutput: end })
  expect(session.code).toBe(3)
  expect(session.stderr).toMatch(/^sandlot: The sandbox has been destroyed \(requested\)\./)
  expect(objectsIn(session).at(-1).error).toMatchObject({ code: 'sandbox_destroyed', exit_code: 3 })
  other[Symbol.dispose]()
})
