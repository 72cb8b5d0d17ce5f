/** Following a command during an outage: retries, notes, Ctrl-C, retry budget. */
import { expect, test } from 'vitest'
import { createApi } from '../../cli/core/api.ts'
import { Settings } from '../../cli/core/settings.ts'
import { createRemote, type Remote } from '../../cli/exec/remote.ts'
import { RetryPolicy } from '../../cli/exec/retry.ts'
import { runStreaming } from '../../cli/exec/stream.ts'
import { shareWorld } from '../support/shared.ts'
import { type CuttableLine, openLine } from './line.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld()
const user = shareSession(makeUsers(world))

const exec = (args: string[], options: Parameters<typeof user.run>[1] = {}) =>
  user.run(['exec', ...args], options)

test.concurrent('`exec` reports an outage, reconnects, and continues where the output stopped', async () => {
  await using line = await openLine(world.url())
  let stderr = ''
  const ran = await exec(
    ['--grace', '30s', '-c', 'echo up; until [ -e is-back ]; do sleep 0.05; done; echo done'],
    {
      env: user.home.through(line.url),
      onStart(child) {
        child.stdout!.once('data', line.hold)
        child.stderr!.on('data', async (chunk) => {
          stderr += chunk
          if (stderr.endsWith('Reconnecting; press Ctrl-C to exit.\n')) line.repair()
          if (stderr.endsWith('reconnected.\n')) await exec(['-n', 'touch', 'is-back'])
        })
      },
    },
  )
  expect(ran).toMatchObject({ code: 0, stdout: 'up\ndone\n' })
  expect(ran.stderr).toMatch(/^sandlot: .+ Reconnecting; press Ctrl-C to exit\.\nsandlot: reconnected\.\n$/)
})

test.concurrent('Ctrl-C makes `exec` exit immediately during an outage', async () => {
  await using line = await openLine(world.url())
  let stderr = ''
  const { code } = await exec(['-n', '-c', 'echo up; sleep 773'], {
    env: user.home.through(line.url),
    onStart(child) {
      child.stdout!.once('data', line.hold)
      child.stderr!.on('data', (chunk) => {
        stderr += chunk
        if (stderr.endsWith('Reconnecting; press Ctrl-C to exit.\n')) child.kill('SIGINT')
      })
    },
  })
  expect(code).toBe(130)
})

/** Uses a connection that breaks when the command prints. */
const remoteOver = (line: CuttableLine) => {
  const { SANDLOT_API_KEY: apiKey } = user.home.through(line.url)
  return createRemote(createApi(new Settings({ url: line.url, apiKey: apiKey! }, {})), user.id)
}

test.concurrent('`exec` reconnects more often than the client retries a single request', async () => {
  await using line = await openLine(world.url())
  const remote = remoteOver(line)
  let tries = 0
  /** A single request has only six attempts, so the eighth attempt restores the connection. */
  const follow: Remote['follow'] = async (...args) => {
    if (++tries === 8) {
      line.repair()
      await exec(['-n', 'touch', 'is-mended'])
    }
    return await remote.follow(...args)
  }
  const command = 'echo up; until [ -e is-mended ]; do sleep 0.05; done; echo done'
  const printed: string[] = []
  const ended = await runStreaming({
    remote: { ...remote, follow },
    request: { command, grace_ms: 60_000 },
    input: undefined,
    async write(_, bytes) {
      printed.push(bytes.toString())
      if (printed.length === 1) line.hold()
    },
    note() {},
    retry: new RetryPolicy({ pausesMs: [1] }),
  })
  expect(ended).toMatchObject({ status: 'exited', exit_code: 0 })
  expect(printed.join('')).toBe('up\ndone\n')
})

test.concurrent('`exec` gives up after the grace period and reports the length of the outage', async () => {
  await using line = await openLine(world.url())
  let now = 0
  const running = runStreaming({
    remote: remoteOver(line),
    request: { command: 'echo up; sleep 772', grace_ms: 3_000 },
    input: undefined,
    write: async () => line.hold(),
    note() {},
    // Each call advances the clock by 10 s.
    retry: new RetryPolicy({ pausesMs: [1], now: () => (now += 10_000) }),
  })
  await expect(running).rejects.toMatchObject({
    code: 'network',
    message: expect.stringMatching(
      /disconnected for \d+ s, longer than the command's grace period of 3 s, so the service will kill the command\. /,
    ),
    hint: expect.stringMatching(/`sandlot logs -s sbx_\w+ exec_\w+` shows its output/),
  })
})
