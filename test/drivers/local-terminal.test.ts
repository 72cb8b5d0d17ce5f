/** What becomes of terminals where the machine has no means to make one. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { findProgram } from '../../scripts/services/find-program.ts'
import { DriverUnavailable } from '../../workers/drivers/driver.ts'
import { greet, startProcess } from '../../workers/drivers/local/connection.ts'
import { eventually } from '../support/eventually.ts'
import { collect } from './processes.ts'

test('a machine without `script` refuses a terminal in clear words, and runs everything else', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-agent-'))
  for (const name of ['run', 'bin']) mkdirSync(join(folder, name))
  for (const program of ['mkfifo', 'echo', 'stty', 'tty']) {
    symlinkSync(findProgram(program)!, join(folder, 'bin', program))
  }
  const socket = join(folder, 'run', 'agent.sock')
  const agent = spawn(
    process.execPath,
    [join(import.meta.dirname, '../../workers/drivers/local/agent.mjs'), socket, join(folder, 'run')],
    { env: { PATH: join(folder, 'bin'), HOME: folder }, stdio: 'ignore' },
  )
  onTestFinished(async () => {
    agent.kill('SIGKILL')
    await once(agent, 'exit')
    rmSync(folder, { recursive: true })
  })
  await eventually(
    () =>
      greet(socket, 1_000).then(
        () => true,
        () => false,
      ),
    10_000,
  )

  const terminal = startProcess(socket, ['echo', 'hello'], 5_000, { tty: { rows: 24, columns: 80 } })
  await expect(terminal).rejects.toThrow(DriverUnavailable)
  await expect(terminal).rejects.toThrow(/no terminal: there is no program script/)
  const plain = await startProcess(socket, ['echo', 'hello'], 5_000)
  expect(String(await collect(plain.stdout))).toBe('hello\n')
})
