/** Tracks a command's clients: the grace period, and recognizing clients that reconnect. */
import { expect, test } from 'vitest'
import { AttachedClients } from '../../workers/exec/attached-clients.ts'
import { OutputLog } from '../../workers/exec/output-log.ts'

/** @param ms grace period. Timers of the same length fire in order. */
function makeClients(ms = 5) {
  const log = new OutputLog()
  const [ended, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const command = { log, ended: ended.promise, isRunning: true }
  const state = { times: 0 }
  const onOver = () => {
    state.times++
    over.resolve()
  }
  const end = () => {
    command.isRunning = false
    ended.resolve()
    return ended.promise
  }
  return { log, clients: new AttachedClients(command, { ms, onOver }), over: over.promise, state, end }
}

/** Resolves when all earlier grace periods are over. */
async function untilLaterGrace(): Promise<void> {
  const { clients, over } = makeClients()
  clients.arrive()
  clients.leave()
  await over
}

test('the grace period expires only when no client is attached', async () => {
  const { clients, over, state } = makeClients()
  clients.arrive()
  const reader = clients.attach()
  clients.leave()
  await untilLaterGrace()
  expect(state.times).toBe(0)
  clients.detach(reader)
  await over
  expect(state.times).toBe(1)
})

test('a client that reconnects within the grace period replaces its old reader', async () => {
  const { log, clients, state } = makeClients()
  const left = clients.attach()
  await log.append('stdout', Buffer.from('abc'))
  await left.next()
  clients.detach(left)
  clients.detach(left)
  const back = clients.attach({ stdout: 2, stderr: 0 })
  expect([left.hasDisconnected, back.hasDisconnected]).toEqual([true, false])
  await untilLaterGrace()
  expect(state.times).toBe(0)
})

test('a client that reconnects at an offset replaces the disconnected reader that stopped at that offset', async () => {
  const { log, clients } = makeClients(60_000)
  const [near, far] = [clients.attach(), clients.attach()]
  await log.append('stdout', Buffer.from('abc'))
  await near.next()
  await far.next()
  await log.append('stdout', Buffer.from('def'))
  await far.next()
  clients.detach(near)
  clients.detach(far)
  clients.attach({ stdout: 3, stderr: 0 })
  expect([near.hasDisconnected, far.hasDisconnected]).toEqual([true, false])
})

test('when a command exits, the grace periods of its disconnected readers end at once', async () => {
  const { clients, state, end } = makeClients()
  const [before, after] = [clients.attach(), clients.attach()]
  clients.detach(before)
  expect(before.hasDisconnected).toBe(false)
  await end()
  expect(before.hasDisconnected).toBe(true)
  clients.detach(after)
  expect(after.hasDisconnected).toBe(true)
  await untilLaterGrace()
  expect(state.times).toBe(0)
})
