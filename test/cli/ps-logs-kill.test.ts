import { hash } from 'node:crypto'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ExecResult } from '../../shared/contract/exec.ts'
import { newExecId } from '../../shared/data/ids.ts'
import type { Account } from '../support/account.ts'
import { startWorld, type World } from '../support/index.ts'
import { clientPath, Home, type RunOptions } from './client.ts'
import { openLine } from './line.ts'
import { openTerminal } from './terminal.ts'

let world: World
let home: Home
let alice: Account
let id: string
beforeAll(async () => {
  world = await startWorld()
  home = new Home()
  alice = await world.account()
  home.writeConfig(`base_url = "${world.url()}"\napi_key = "${alice.key}"\n`)
  id = (await alice.call('createSandbox')).body.id
})
afterAll(async () => {
  home[Symbol.dispose]()
  await world[Symbol.asyncDispose]()
})

/** @param args starts with `logs` or `kill` */
const run = (args: string[], options: RunOptions = {}) => home.run([...args, '-s', id], options)
const startIn = async (id: string, command: string) => {
  const body = { command, background: true }
  return (await alice.call('execCommand', { params: { id }, body })).body.id
}
const start = (command: string) => startIn(id, command)
/** Waits until a command's result meets the condition. */
const until = (exec_id: string, isSo: (result: ExecResult) => boolean, sandboxId = id) =>
  world.eventually(async () => {
    const { body } = await alice.call('getExec', { params: { id: sandboxId, exec_id } })
    return isSo(body) && body
  }, 10_000)
const isOver = ({ status }: ExecResult) => status !== 'running'
const saysUp = ({ stdout }: ExecResult) => stdout === 'up\n'

test("`ps` lists a session's commands in pages, newest first", async () => {
  const { body } = await alice.call('createSandbox')
  const commands = ['exit 3', 'kill -9 $$', 'exec sleep 60']
  const ids: string[] = []
  for (const [index, command] of commands.entries()) {
    ids.unshift(await startIn(body.id, command))
    if (index < 2) await until(ids[0]!, isOver, body.id)
  }
  const ps = (...args: string[]) => home.run(['ps', '-s', body.id, ...args])

  const { code, stdout } = await ps()
  expect(code).toBe(0)
  const rows = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t'))
  expect(rows.map(([id, status, end, , , command]) => [id, status, end, command])).toEqual([
    [ids[0], 'running', '', 'exec sleep 60'],
    [ids[1], 'signaled', 'SIGKILL', 'kill -9 $$'],
    [ids[2], 'exited', '3', 'exit 3'],
  ])
  for (const [, , , startedAt, seconds] of rows) {
    expect(Date.parse(startedAt!)).toBeGreaterThan(0)
    expect(seconds).toMatch(/^\d+\.\d{3}$/)
  }
  const first = (await ps('--json', '--limit', '2')).json()
  expect(first.data.map(({ id }: ExecResult) => id)).toEqual(ids.slice(0, 2))
  expect((await ps('--cursor', first.next_cursor)).stdout).toBe(`${rows[2]!.join('\t')}\n`)

  expect((await ps('--running', '--quiet')).stdout).toBe(`${ids[0]}\n`)

  const command = [process.execPath, clientPath, 'ps', '-s', body.id]
  const terminal = openTerminal(command, home.environment())
  expect(await terminal.ended).toBe(0)
  expect(stripVTControlCharacters(terminal.screen())).toMatch(
    /^ID +STATUS +EXIT +STARTED +SECONDS +COMMAND\r\n/,
  )
  expect(terminal.screen()).toContain(`session ${body.id}. \`sandlot ls\` lists the sessions`)
  await alice.call('destroySandbox', { params: { id: body.id } })
})

test('`logs` prints both streams of finished and running commands byte for byte', async () => {
  const print = 'printf "\\377\\000\\303\\251 out\\r\\n"; printf "\\376 err" >&2'
  const [ended, running, silent] = await Promise.all([
    start(print),
    start(`${print}; exec sleep 60`),
    start('exec sleep 60'),
  ])
  await until(ended, isOver)
  await until(running, ({ stdout_bytes, stderr_bytes }) => stdout_bytes + stderr_bytes === 15)
  for (const id of [ended, running]) {
    const { code, bytes, stderr } = await run(['logs', id])
    expect(bytes).toEqual(Buffer.from('\xff\0\xc3\xa9 out\r\n', 'latin1'))
    expect(stderr).toBe('\ufffd err')
    expect(code).toBe(0)
  }
  expect(await run(['logs', silent])).toMatchObject({ code: 0, stdout: '', stderr: '' })
  for (const exec_id of [running, silent]) await alice.call('stopExec', { params: { id, exec_id } })
})

test('`logs` reports how many bytes of output were dropped', async () => {
  const id = await start('yes | head -c 12000000; echo the end')
  await until(id, isOver)
  const { code, stdout, stderr } = await run(['logs', id])
  const missing = Number(/^sandlot: (\d+) bytes of stdout are missing here, because .*\n$/.exec(stderr)?.[1])
  expect(missing).toBeGreaterThan(3_000_000)
  expect(missing + stdout.length).toBe(12_000_008)
  expect(stdout.endsWith('y\nthe end\n')).toBe(true)
  expect(code).toBe(0)
})

test('`logs -f` reconnects after an outage and exits with code 0', async () => {
  await using line = await openLine(world.url())
  // Each round waits for a cut connection, even if the reader is late.
  const waiting = 'until [ -e go$turn ]; do sleep 0.05; done'
  const execId = await start(`for turn in 1 2 3 4; do seq 100000; ${waiting}; done; exit 7`)
  const numbers = Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join('')
  let cuts = 0
  let shown = 0
  const released: Promise<unknown>[] = []
  const hasPassed = (chunk: Buffer, every: number) =>
    Math.floor((shown + chunk.length) / every) > Math.floor(shown / every)
  const followed = await run(['logs', '-f', execId], {
    env: home.through(line.url),
    onStart: (child) =>
      child.stdout!.on('data', (chunk) => {
        // Cuts in the middle of the output, and while the command waits.
        if (hasPassed(chunk, 5e5) || hasPassed(chunk, numbers.length)) cuts += line.cut()
        shown += chunk.length
        const turn = shown / numbers.length
        if (!Number.isInteger(turn)) return
        released.push(alice.call('createFile', { params: { id }, body: { path: `go${turn}`, content: '' } }))
      }),
  })
  await Promise.all(released)
  expect(followed).toMatchObject({ code: 0, stderr: '' })
  expect(cuts).toBeGreaterThanOrEqual(4)
  expect(hash('sha256', followed.bytes)).toBe(hash('sha256', numbers.repeat(4)))
  const result = await run(['logs', '-f', '--json', execId])
  expect(result.code).toBe(0)
  expect(result.json()).toMatchObject({ id: execId, status: 'exited', exit_code: 7 })
})

test('when the reader closes the pipe, `logs` exits and the command keeps running', async () => {
  const exec_id = await start('while :; do echo y; done')
  const { code, stderr } = await run(['logs', '-f', exec_id], {
    onStart: (child) => child.stdout!.once('data', () => child.stdout!.destroy()),
  })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect((await run(['kill', exec_id])).stdout).toBe(`${exec_id} signaled SIGTERM\n`)
})

test("`kill` prints the command's exit status, or reports that the command is still running", async () => {
  const [polite, deaf] = await Promise.all([
    start('trap "echo bye; exit 9" USR1; echo up; while :; do sleep 0.05; done'),
    start('trap "" HUP; echo up; while :; do sleep 0.05; done'),
  ])
  await Promise.all([until(polite, saysUp), until(deaf, saysUp)])
  const [ended, still] = await Promise.all([
    run(['kill', '--signal', 'USR1', polite]),
    run(['kill', '--signal', 'HUP', deaf]),
  ])
  expect(ended).toMatchObject({ code: 0, stdout: `${polite} exited 9\n`, stderr: '' })
  expect(still).toMatchObject({ code: 0, stdout: `${deaf} still running\n`, stderr: '' })
  const killed = await run(['kill', '--json', '--signal', '9', deaf])
  expect(killed.code).toBe(0)
  expect(killed.json()).toMatchObject({ id: deaf, status: 'signaled', signal: 'SIGKILL', stdout: 'up\n' })

  const again = await run(['kill', '--json', deaf])
  expect(again.code).toBe(5)
  expect(again.json().error).toMatchObject({ code: 'exec_finished', exit_code: 5 })
  expect(again.stderr).toContain('has already ended: signaled SIGKILL')
})

test('for an unknown command id, the client exits with code 3 and suggests `ps`', async () => {
  for (const name of ['logs', 'kill']) {
    const { code, stderr } = await run([name, newExecId()])
    expect(code).toBe(3)
    expect(stderr).toContain('`sandlot ps`')
  }
  const { code, stderr } = await run(['kill', '--signal', 'NONE', newExecId()])
  expect(code).toBe(2)
  expect(stderr).toContain('signal')
})

test('after the session is destroyed, `logs` reports how many bytes of output are missing', async () => {
  const { body } = await alice.call('createSandbox')
  const ended = await startIn(body.id, 'echo 1234; exit 3')
  await until(ended, isOver, body.id)
  await alice.call('destroySandbox', { params: { id: body.id } })
  const { code, stdout, stderr } = await home.run(['logs', '-s', body.id, ended])
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
  expect(stderr).toBe(
    'sandlot: 5 bytes of stdout are missing here, because the service no longer keeps them.\n',
  )
})
