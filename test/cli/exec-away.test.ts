/** What is followed while the service is away: it is tried for long, told, left with Ctrl-C, and given up in the end. */
import { expect, test } from 'vitest'
import { createApi } from '../../cli/core/api.ts'
import { Settings } from '../../cli/core/settings.ts'
import { readAll } from '../../cli/exec/follow.ts'
import { createRemote, type Remote } from '../../cli/exec/remote.ts'
import { RetryPolicy } from '../../cli/exec/retry.ts'
import { runStreaming } from '../../cli/exec/stream.ts'
import { bytesOf } from '../../shared/contract/exec-events.ts'
import { shareWorld } from '../support/shared.ts'
import { type CuttableLine, openLine } from './line.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld()
const user = shareSession(makeUsers(world))

const exec = (args: string[], options: Parameters<typeof user.run>[1] = {}) =>
  user.run(['exec', ...args], options)

test.concurrent('while the service is away that is said, and the command goes on where it was when it is back', async () => {
  await using line = await openLine(world.url())
  let said = ''
  const ran = await exec(
    ['--grace', '30s', '-c', 'echo up; until [ -e is-back ]; do sleep 0.05; done; echo done'],
    {
      env: user.home.through(line.url),
      onStart(child) {
        child.stdout!.once('data', line.hold)
        child.stderr!.on('data', async (chunk) => {
          said += chunk
          if (said.endsWith('Connecting again; Ctrl-C leaves.\n')) line.repair()
          if (said.endsWith('connected again.\n')) await exec(['-n', 'touch', 'is-back'])
        })
      },
    },
  )
  expect(ran).toMatchObject({ code: 0, stdout: 'up\ndone\n' })
  expect(ran.stderr).toMatch(/^sandlot: .+ Connecting again; Ctrl-C leaves\.\nsandlot: connected again\.\n$/)
})

test.concurrent('Ctrl-C leaves at once while the service is away', async () => {
  await using line = await openLine(world.url())
  let said = ''
  const { code } = await exec(['-n', '-c', 'echo up; sleep 773'], {
    env: user.home.through(line.url),
    onStart(child) {
      child.stdout!.once('data', line.hold)
      child.stderr!.on('data', (chunk) => {
        said += chunk
        if (said.endsWith('Connecting again; Ctrl-C leaves.\n')) child.kill('SIGINT')
      })
    },
  })
  expect(code).toBe(130)
})

/** The client's calls over a line that breaks when the command prints. */
const remoteOver = (line: CuttableLine) => {
  const { SANDLOT_API_KEY: apiKey } = user.home.through(line.url)
  return createRemote(createApi(new Settings({ url: line.url, apiKey: apiKey! }, {})), user.id)
}

/** A single request gets six. */
const manyTries = 8

/** Mends the line before the last of many tries to follow again; the command of {@link waiting} goes on then. */
const mendLate = (line: CuttableLine, remote: Remote, file: string): Remote => {
  let tries = 0
  return {
    ...remote,
    async follow(...args) {
      if (++tries === manyTries) {
        line.repair()
        await exec(['-n', 'touch', file])
      }
      return await remote.follow(...args)
    },
  }
}

const waiting = (file: string) => `echo up; until [ -e ${file} ]; do sleep 0.05; done; echo done`

/** As long as the client's own, with shorter pauses. */
const quick = () => new RetryPolicy({ pausesMs: [1] })

test.concurrent('an exec goes on after more tries than a single request gets', async () => {
  await using line = await openLine(world.url())
  const printed: string[] = []
  const ended = await runStreaming({
    remote: mendLate(line, remoteOver(line), 'mended-1'),
    request: { command: waiting('mended-1'), grace_ms: 60_000 },
    input: undefined,
    async write(_, bytes) {
      printed.push(bytes.toString())
      if (printed.length === 1) line.hold()
    },
    note() {},
    retry: quick(),
  })
  expect(ended).toMatchObject({ status: 'exited', exit_code: 0 })
  expect(printed.join('')).toBe('up\ndone\n')
})

test.concurrent('and so do logs -f', async () => {
  await using line = await openLine(world.url())
  const remote = remoteOver(line)
  const { id } = await remote.launch({ command: waiting('mended-2') })
  const { follow } = mendLate(line, remote, 'mended-2')
  const open = (lastId?: string) => follow(id, lastId)
  let printed = ''
  for await (const event of readAll(await remote.follow(id), open, { retry: quick() })) {
    if (event.event !== 'stdout') continue
    if (printed === '') line.hold()
    printed += bytesOf(event.data)
  }
  expect(printed).toBe('up\ndone\n')
})

test.concurrent('one that stays away is given up, and how long it was away and what was exceeded is said', async () => {
  await using line = await openLine(world.url())
  let now = 0
  const running = runStreaming({
    remote: remoteOver(line),
    request: { command: 'echo up; sleep 772', grace_ms: 3_000 },
    input: undefined,
    write: async () => line.hold(),
    note() {},
    // Each look at the clock is 10 s later.
    retry: new RetryPolicy({ pausesMs: [1], now: () => (now += 10_000) }),
  })
  await expect(running).rejects.toMatchObject({
    code: 'network',
    message: expect.stringMatching(
      /away for \d+ s, longer than the command's grace of 3 s, and the service ends the command\. /,
    ),
    hint: expect.stringMatching(/`sandlot logs -s sbx_\w+ exec_\w+` shows what it printed/),
  })
})
