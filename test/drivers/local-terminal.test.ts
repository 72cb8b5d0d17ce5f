import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { findProgram } from '../../scripts/services/find-program.ts'
import { DriverUnavailable } from '../../workers/drivers/driver.ts'
import { startProcess } from '../../workers/drivers/local/connection.ts'
import { collect } from './processes.ts'

test('on a machine without `script`, terminals are rejected and all other commands run', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-agent-'))
  for (const name of ['run', 'bin']) mkdirSync(join(folder, name))
  for (const program of ['mkfifo', 'echo', 'stty', 'tty']) {
    symlinkSync(findProgram(program)!, join(folder, 'bin', program))
  }
  const socket = join(folder, 'agent.sock')
  const server = createServer().listen(socket)
  await once(server, 'listening')
  const { fd } = (server as unknown as { _handle: { fd: number } })._handle
  const agent = spawn(
    process.execPath,
    [join(import.meta.dirname, '../../workers/drivers/local/agent.mjs'), '3', join(folder, 'run')],
    { env: { PATH: join(folder, 'bin'), HOME: folder }, stdio: ['ignore', 'ignore', 'ignore', fd] },
  )
  // Closing the server would remove the socket.
  renameSync(socket, `${socket}.kept`)
  server.close()
  renameSync(`${socket}.kept`, socket)
  onTestFinished(async () => {
    agent.kill('SIGKILL')
    await once(agent, 'exit')
    rmSync(folder, { recursive: true })
  })
  const terminal = startProcess(socket, ['echo', 'hello'], 10_000, { tty: { rows: 24, columns: 80 } })
  await expect(terminal).rejects.toThrow(DriverUnavailable)
  await expect(terminal).rejects.toThrow(/no terminal: the program script is not installed/)
  const plain = await startProcess(socket, ['echo', 'hello'], 10_000)
  expect(String(await collect(plain.stdout))).toBe('hello\n')
})
