import pino from 'pino'
import { expect, test } from 'vitest'
import type { OutputOffset } from '../../shared/contract/exec-events.ts'
import { limits } from '../../shared/contract/limits.ts'
import { MemoryBudget } from '../../shared/platform/memory-budget.ts'
import { type Command, withoutExitCode } from '../../workers/exec/command.ts'
import type { Reader } from '../../workers/exec/output-log.ts'
import { Commands } from '../../workers/exec/registry.ts'
import { makeCommand as makeOne } from '../support/command.ts'

const mib = 1024 * 1024
const memoryBudget = new MemoryBudget({ ofAccount: 64 * mib, ofAll: 256 * mib }, pino({ level: 'silent' }))
const makeCommand = () => makeOne({ grace_ms: 60_000 })
const makeCommands = (budget = memoryBudget) => new Commands({ has: () => false }, budget)

/** Whether `append` resolves soon after these bytes were printed. */
const goesOn = (printed: Promise<void>) =>
  Promise.race([printed.then(() => true), new Promise((resolve) => setTimeout(resolve, 50, false))])

async function readAll(reader: Reader, end: number): Promise<OutputOffset> {
  while (reader.offset.stdout < end) expect((await reader.next())?.kind).toBe('output')
  return { ...reader.offset }
}

test('a command blocked by a disconnected reader continues when the reader reconnects', async () => {
  const command = makeCommand()
  const left = command.clients.attach()
  await command.take('stdout', Buffer.alloc(mib))
  const seen = await readAll(left, mib / 2)
  command.clients.detach(left)
  const more = command.take('stdout', Buffer.alloc(4 * mib))
  expect(await goesOn(more)).toBe(false)

  // Any client that reads from the start also unblocks the command.
  const other = command.clients.attach()
  await readAll(other, 5 * mib)
  expect(await goesOn(more)).toBe(false)

  const back = command.clients.attach(seen)
  await readAll(back, 5 * mib)
  expect(await goesOn(more)).toBe(true)
})

test("a sandbox's retained output is limited, but unread output is kept", async () => {
  const commands = makeCommands()
  const print = async (command: Command, bytes: number) => {
    for (let printed = 0; printed < bytes; printed += 64 * 1024) {
      void command.take('stdout', Buffer.alloc(64 * 1024))
      commands.trim('sbx_1')
    }
  }
  const [read, ...others] = [makeCommand(), makeCommand(), makeCommand(), makeCommand()]
  for (const command of [read!, ...others]) commands.add(command)
  const reader = read!.clients.attach()
  await print(read!, 3 * mib)
  for (const command of others) await print(command, 9 * mib)
  const kept = [read!, ...others].reduce((sum, { keptBytes }) => sum + keptBytes, 0)
  expect(kept).toBeLessThanOrEqual(limits.keptBytesOfSandbox)
  await readAll(reader, 3 * mib)
})

test("commands with slow readers share their sandbox's output limit", async () => {
  const commands = makeCommands()
  const all = Array.from({ length: 16 }, makeCommand)
  for (const command of all) {
    commands.add(command)
    command.clients.attach()
  }
  commands.trim('sbx_1')
  for (const command of all) {
    expect(await goesOn(command.take('stdout', Buffer.alloc(mib - 1)))).toBe(true)
    expect(await goesOn(command.take('stdout', Buffer.alloc(1)))).toBe(false)
  }
})

test('the `truncated` field is set if output is missing', () => {
  const whole = makeCommand()
  const cut = makeCommand()
  whole.finish(withoutExitCode('killed', null))
  cut.finish(withoutExitCode('killed', null), true)
  expect(whole.summary().truncated).toBe(false)
  expect(cut.summary().truncated).toBe(true)
  expect(cut.result().truncated).toBe(true)
})

test('when the total output exceeds the limit, the output of the largest account is dropped first', async () => {
  const small = new MemoryBudget({ ofAccount: 64 * mib, ofAll: 20 * mib }, pino({ level: 'silent' }))
  const commands = makeCommands(small)
  const print = async (accountId: string, sandboxId: string, bytes: number) => {
    const command = makeOne({}, { accountId, sandboxId })
    commands.add(command)
    await command.take('stdout', Buffer.alloc(bytes))
    commands.trim(sandboxId)
    return command
  }
  const [first, second] = [await print('a', 'a1', 6 * mib), await print('a', 'a2', 5 * mib)]
  const other = await print('b', 'b1', 5 * mib)
  expect(small.sums.output).toBeLessThanOrEqual(20 * mib)
  const kept = [first, second, other].map(({ log }) => log.keptBytes)
  await print('c', 'c1', 4 * mib)
  expect(small.sums.output).toBeLessThanOrEqual(20 * mib)
  expect([first, second, other].map(({ log }, at) => log.keptBytes < kept[at]!)).toEqual([true, false, false])
  for (const sandboxId of ['a1', 'a2', 'b1', 'c1'])
    commands.markDestroyed(sandboxId, withoutExitCode('killed', null))
})

test('a finished command counts as pending until a client receives its exit status or a timeout expires', async () => {
  const commands = makeCommands()
  const command = makeCommand()
  commands.add(command)
  expect(commands.pendingCount).toBe(1)
  command.finish(withoutExitCode('killed', null))
  await command.ended
  expect(command.isPending(60_000)).toBe(true)
  expect(command.isPending(0)).toBe(false)
  const left = command.waitForDelivery(60_000)
  expect(command.summary().status).toBe('killed')
  await left
  expect(command.isPending(60_000)).toBe(false)
  expect(commands.pendingCount).toBe(0)
})
