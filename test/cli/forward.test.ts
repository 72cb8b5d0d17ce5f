/** `sandlot forward` with real clients on this machine and real servers in a sandbox. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, createServer } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { echoOn, untilListening } from '../support/listeners.ts'
import { shareWorld } from '../support/shared.ts'
import type { Ran } from './client.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld()
const users = makeUsers(world)
const user = shareSession(users)

/** Forwards ports while `work` runs. @returns the output and exit code */
async function forwarding(args: string[], work: (ports: number[]) => Promise<void>, by = user): Promise<Ran> {
  const { promise: started, resolve } = Promise.withResolvers<() => void>()
  let printed = ''
  const { promise: listening, resolve: isListening } = Promise.withResolvers<number[]>()
  const ran = by.run(['forward', ...args], {
    onStart(child) {
      resolve(() => void child.kill('SIGINT'))
      child.stdout!.on('data', (chunk) => {
        printed += chunk
        const ports = [...printed.matchAll(/:(\d+) -> \d+\n/g)].map(([, port]) => Number(port))
        if (ports.length === args.length) isListening(ports)
      })
    },
  })
  const over = ran.then(({ stderr }) => Promise.reject(new Error(`it ended: ${stderr}`)))
  over.catch(() => {})
  await work(await Promise.race([listening, over]))
  ;(await started)()
  return await ran
}

const background = async (script: string, port: number, by = user) => {
  const started = await by.run(['exec', '--background', '-c', script])
  expect(started).toMatchObject({ code: 0 })
  expect(await by.run(['exec', '-c', untilListening(port)])).toMatchObject({ stdout: 'listening\n' })
}

// Concurrent, because the tests mostly wait and use separate ports and sessions.
test.concurrent('`forward` supports concurrent connections, and reports a port that nothing listens on', async () => {
  await background(echoOn(3000), 3000)
  const ran = await forwarding([':3000', ':3999'], async ([port, closed]) => {
    const echoed = async (length: number) => {
      const socket = connect({ port: port!, host: '127.0.0.1' })
      const bytes = randomBytes(length)
      socket.end(bytes)
      expect((await buffer(socket)).equals(bytes)).toBe(true)
    }
    await Promise.all([echoed(12_000_000), ...Array.from({ length: 8 }, () => echoed(100_000))])
    const refused = connect({ port: closed!, host: '127.0.0.1' })
    await expect(once(refused, 'end')).rejects.toMatchObject({ code: 'ECONNRESET' })
  })
  expect(ran.code).toBe(130)
  expect(ran.stdout).toMatch(/^127\.0\.0\.1:\d+ -> 3000\n127\.0\.0\.1:\d+ -> 3999\n$/)
  expect(ran.stderr).toContain('sandlot: no process is listening on port 3999 in the sandbox\n')
})

test.concurrent('`forward` supports HTTP/2 and WebSockets', async () => {
  const server = `
    require('node:http2').createServer((request, response) => response.end('two ' + request.url)).listen(3001, '127.0.0.1')
    const { WebSocketServer } = require('./ws')
    new WebSocketServer({ port: 3002, host: '127.0.0.1' }).on('connection', (socket) =>
      socket.on('message', (data) => socket.send('heard ' + data)))`
  expect(await user.run(['cp', '-r', 'node_modules/ws', ':'])).toMatchObject({ code: 0 })
  const node = `node=/run/sandlot/node; [ -x $node ] || node='${process.execPath}'`
  await background(`${node}; exec $node -e "${server}"`, 3001)
  expect(await user.run(['exec', '-c', untilListening(3002)])).toMatchObject({ code: 0 })
  await forwarding([':3001', ':3002'], async ([http, ws]) => {
    const session = connectHttp2(`http://127.0.0.1:${http}`)
    const answers = await Promise.all(
      ['/a', '/b', '/c'].map(async (path) => String(await buffer(session.request({ ':path': path })))),
    )
    expect(answers).toEqual(['two /a', 'two /b', 'two /c'])
    session.close()
    const socket = new WebSocket(`ws://127.0.0.1:${ws}`)
    await once(socket, 'open')
    socket.send('me')
    expect(String((await once(socket, 'message'))[0])).toBe('heard me')
    socket.close()
    await once(socket, 'close')
  })
})

test.concurrent('`forward` exits when the session ends, and reports the reason', async () => {
  await using other = await users.newSession()
  const ran = other.run(['forward', ':3000', '--json'], {
    onStart: (child) =>
      void child.stdout!.once('data', () => void other.run(['session', 'rm', '--yes', other.id])),
  })
  expect(await ran).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('The session has ended (requested).'),
  })
})

test.concurrent('`forward` rejects an invalid port and a port that is in use', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  expect(await user.run(['forward', `${port}:3000`])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/it is in use.*\n.*sandlot forward :3000/),
  })
  server.close()
  for (const wrong of ['0', '70000', '80:x', 'http'])
    expect(await user.run(['forward', wrong])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('PORT or LOCAL:PORT'),
    })
})
