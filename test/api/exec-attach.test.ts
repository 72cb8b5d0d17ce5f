import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import { limits } from '../../shared/contract/limits.ts'
import type { Account } from '../support/account.ts'
import { describeOnBothDrivers } from '../support/drivers.ts'
import type { World } from '../support/index.ts'
import { shareSandbox } from '../support/shared.ts'
import { newWebSocket, untilOpen } from '../support/web-socket.ts'

describeOnBothDrivers('attaching to a command', (driver) => {
  const { world, alice, params, sh, countOf, waitForExit } = shareSandbox({ driver })

  const start = async (body: ExecRequest) => {
    const answer = await alice.call('execCommand', { params, body })
    expect(answer.status).toBe(202)
    return answer.body.id
  }
  const open = (execId: string, as: Account = alice) => attach(world, as, params.id, execId)
  /** Starts a shell with a terminal, and waits for its prompt. */
  const shell = async (more: Partial<ExecRequest> = {}) => {
    const line = await open(await start({ command: ['sh'], tty: true, env: { PS1: '> ' }, ...more }))
    await line.shows('> ')
    return line
  }

  test('a shell in a terminal reads input, shows output and reports its exit status', async () => {
    const line = await shell()
    const { headers } = line.opened
    expect(headers['x-ratelimit-limit']).toBe(String(world.settings.rates.sandbox_ops))
    expect(Number(headers['x-ratelimit-remaining'])).toBeGreaterThan(0)
    expect(headers['x-request-id']).toMatch(/^req_/)
    line.type('test -t 0 && test -t 1 && echo is-$((40+2))\n')
    await line.shows('is-42')
    line.type('exit 7\n')
    const { exit, code } = await line.end()
    expect(exit).toMatchObject({ type: 'exit', status: 'exited', exit_code: 7, signal: null })
    expect(exit).not.toHaveProperty('stdout')
    expect(code).toBe(1000)
    expect(line.stderr()).toBe('')
  })

  test('a terminal does not echo the command line or its environment', async () => {
    const line = await open(
      await start({ command: 'read x; echo "end $x"', tty: true, env: { SECRET: 'canary' } }),
    )
    line.type('word\n')
    await line.shows('end word')
    await line.end()
    expect(line.stdout()).not.toMatch(/canary|read x|eval/)
  })

  test('a terminal starts at the requested size and can be resized', async () => {
    const line = await shell({ rows: 33, columns: 99 })
    line.type('stty size\n')
    await line.shows('33 99')
    line.send({ type: 'resize', rows: 50, columns: 132 })
    // Resizing and input are not ordered relative to each other.
    await world.eventually(async () => {
      line.type('stty size\n')
      return line.stdout().includes('50 132')
    }, 5_000)
    line.type('exit\n')
    await line.end()
  })

  test('Ctrl-C interrupts the program running in the shell, but not the shell', async () => {
    const line = await shell()
    // The output shows that the command is in the foreground. Earlier, the shell would ignore Ctrl-C.
    line.type("sh -c 'echo has-it-$((1+1)); exec sleep 1000'\n")
    await line.shows('has-it-2')
    line.type('\x03')
    await line.shows('> ')
    line.type('echo still-$((1+1)); exit\n')
    await line.shows('still-2')
    await line.end()
  })

  test('a terminal echoes each key before the next key is sent', async () => {
    const line = await open(await start({ command: ['cat'], tty: true }))
    for (const key of 'abcdefghij') {
      line.type(key)
      await line.shows(key)
    }
    line.send({ type: 'signal', signal: 'KILL' })
    expect((await line.end()).exit).toMatchObject({ status: 'signaled', signal: 'SIGKILL' })
  })

  test('a backspace in a terminal erases a whole multi-byte character', async () => {
    const line = await open(await start({ command: 'read -r word; echo "<$word>"', tty: true }))
    line.type('naïve\x7f\x7f\x7fve\n')
    await line.end()
    expect(line.bytes('stdout').toString('latin1')).toContain('<nave>')
  })

  test('stdin from an exec request reaches the terminal as typed input', async () => {
    const exec_id = await start({ command: 'read word; echo "got-$word"', tty: true, stdin: 'it\n' })
    expect(await waitForExit(exec_id)).toMatchObject({
      exit_code: 0,
      stdout: expect.stringContaining('got-it'),
    })
  })

  test('an attached command without a terminal has separate output streams, and its stdin can be closed', async () => {
    const execId = await start({ command: 'cat; echo err >&2; exit 2', background: true })
    const line = await open(execId)
    line.type(Buffer.from([0, 255, 10]))
    line.send({ type: 'eof' })
    expect((await line.end()).exit).toMatchObject({ exit_code: 2, stdout_bytes: 3, stderr_bytes: 4 })
    expect(line.bytes('stdout')).toEqual(Buffer.from([0, 255, 10]))
    expect(line.stderr()).toBe('err\n')
  })

  test('a signal reaches a command even while megabytes of stdin are unread', async () => {
    const line = await open(await start({ command: ['sleep', '661'], background: true }))
    for (let index = 0; index < 64; index++) line.type(Buffer.alloc(limits.messageBytes))
    line.send({ type: 'nonsense' })
    line.send({ type: 'eof' })
    expect(await countOf('slee[p] 661')).toBe(1)
    line.send({ type: 'signal', signal: 'KILL' })
    await world.eventually(async () => (await countOf('slee[p] 661')) === 0, 10_000)
    // Kubernetes does not report the exit of a command with unread stdin, so the result may be `lost`.
    expect(['signaled', 'lost']).toContain((await line.end()).exit!.status)
  })

  test('delivers all input in order, even when a large amount is pending', async () => {
    const command = 'until [ -e go ]; do sleep 0.1; done; sha256sum'
    const line = await open(await start({ command, background: true }))
    const hash = createHash('sha256')
    for (let index = 0; index < 192; index++) {
      const bytes = randomBytes(limits.messageBytes)
      hash.update(bytes)
      line.type(bytes)
    }
    line.send({ type: 'eof' })
    await sh('touch go')
    await line.end()
    expect(line.stdout()).toContain(hash.digest('hex'))
  })

  test('a command keeps running for the grace period after its WebSocket connection breaks', async () => {
    const exec_id = await start({ command: 'read -r _; head -c 30000000 /dev/zero', background: true })
    const line = await open(exec_id)
    line.stopReading()
    line.type('\n')
    const get = async () => (await alice.call('getExec', { params: { ...params, exec_id } })).body
    await world.eventually(async () => (await get()).stdout_bytes > 4_000_000, 5_000)
    const broken = performance.now()
    line.breakOff()
    await world.eventually(async () => (await get()).status === 'exited', 20_000)
    expect(performance.now() - broken).toBeGreaterThan(limits.graceMs.default - 100)
  })

  test('connections reset during the WebSocket handshake do not affect the command', async () => {
    const exec_id = await start({ command: 'sleep 1; head -c 30000000 /dev/zero', background: true })
    const { hostname, port } = new URL(world.url())
    // Disconnects at different moments between the request and its response.
    for (let index = 0; index < 40; index++) {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      await once(socket, 'connect')
      socket.write(
        `GET /v1/sandboxes/${params.id}/exec/${exec_id}/attach HTTP/1.1\r\nhost: ${hostname}:${port}\r\n` +
          `authorization: Bearer ${alice.key}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
          `sec-websocket-version: 13\r\nsec-websocket-key: ${randomBytes(16).toString('base64')}\r\n\r\n`,
      )
      await new Promise((resolve) => setTimeout(resolve, index / 4))
      socket.resetAndDestroy()
    }
    await world.eventually(async () => {
      const { body } = await alice.call('getExec', { params: { ...params, exec_id } })
      return body.status === 'exited' && body.stdout_bytes === 30_000_000
    }, 15_000)
  })

  test("kills a command in a terminal if the command's database row cannot be updated", async () => {
    await world.db.query(
      `create function refuse_pid() returns trigger language plpgsql as $$
         begin raise exception 'no'; end $$`,
    )
    await world.db.query(
      `create trigger refuse_pid before update of pid on exec for each row execute function refuse_pid()`,
    )
    try {
      const request = { command: ['sleep', '663'], tty: true }
      await expect(alice.call('execCommand', { params, body: request })).rejects.toMatchObject({
        status: 500,
      })
    } finally {
      await world.db.query('drop function refuse_pid cascade')
    }
    await world.eventually(async () => (await countOf('slee[p] 663')) === 0, 10_000)
  })

  test('a rejected attach request receives a problem document', async () => {
    const execId = await start({ command: ['cat'], background: true })
    const bob = await world.account()
    await expect(open(execId, bob)).rejects.toMatchObject({ status: 404, code: 'not_found' })
    await expect(open(execId, alice.with({ key: 'nonsense' }))).rejects.toMatchObject({ status: 401 })
    await expect(alice.open('attachExec', { params: { ...params, exec_id: execId } })).rejects.toMatchObject({
      status: 400,
      code: 'invalid_request',
    })
    await alice.call('stopExec', { params: { ...params, exec_id: execId }, query: { signal: 'KILL' } })
    await world.eventually(
      () =>
        open(execId).then(
          () => false,
          (error) => error.status === 409 && error.code === 'exec_finished',
        ),
      5_000,
    )
  })

  test('revoking a key closes its WebSockets but does not stop the command', async () => {
    const other = await alice.withNewKey()
    const execId = await start({ command: ['cat'], tty: true })
    const line = await open(execId, other)
    await alice.call('revokeApiKey', { params: { key_id: other.keyId } })
    expect(await line.end()).toEqual({ code: 1006, exit: undefined })
    const again = await open(execId)
    again.type('still here\n')
    await again.shows('still here')
  })

  test('ignores upgrade requests for other protocols and other routes', async () => {
    const response = await fetch(`${world.url()}/v1/openapi.json`)
    expect(response.status).toBe(200)
    const socket = newWebSocket(world, alice, '/v1/account')
    await expect(untilOpen(socket)).rejects.toMatchObject({ status: 200 })
  })

  test('an attached WebSocket reports that the sandbox has been destroyed', async () => {
    const other = (await alice.call('createSandbox')).body.id
    const { body } = await alice.call('execCommand', {
      params: { id: other },
      body: { command: ['cat'], tty: true },
    })
    const line = await attach(world, alice, other, body.id)
    await alice.call('destroySandbox', { params: { id: other } })
    expect((await line.end()).exit).toMatchObject({ status: 'killed', reason: 'requested' })
  })
})

async function attach(world: World, account: Account, id: string, execId: string) {
  const socket = newWebSocket(world, account, `/v1/sandboxes/${id}/exec/${execId}/attach`)
  const received: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] }
  const text = (stream: 'stdout' | 'stderr') => Buffer.concat(received[stream]).toString()
  // biome-ignore lint/suspicious/noExplicitAny: tests check the fields
  let exit: any
  let seen = 0
  let check = () => {}
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) received[data[0] === 2 ? 'stderr' : 'stdout'].push(data.subarray(1))
    else exit = JSON.parse(String(data))
    check()
  })
  const closed = new Promise<number>((resolve) => socket.on('close', resolve))
  const opened = await untilOpen(socket)
  return {
    opened,
    type: (keys: string | Buffer) => socket.send(Buffer.from(keys as string)),
    stopReading: () => socket.pause(),
    breakOff: () => socket.terminate(),
    send: (message: object) => socket.send(JSON.stringify(message)),
    bytes: (stream: 'stdout' | 'stderr') => Buffer.concat(received[stream]),
    stdout: () => text('stdout'),
    stderr: () => text('stderr'),
    /** Waits until the text appears after the text of previous calls. */
    shows: (words: string) =>
      new Promise<void>((resolve, reject) => {
        check = () => {
          const at = text('stdout').indexOf(words, seen)
          if (at < 0) return
          seen = at + words.length
          resolve()
        }
        check()
        void closed.then(() => reject(new Error(`closed without showing ${words}: ${text('stdout')}`)))
      }),
    end: async () => ({ code: await closed, exit }),
  }
}
