/** Missing output is reported in streams and in every response. */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { passEvents } from '../../api/exec/events.ts'
import { preferRow, writeLastEvents } from '../../api/exec/exit-status.ts'
import { cutToSize } from '../../api/mcp/output.ts'
import { describeExit, exitCodeOf, noteExitStatus } from '../../cli/exec/exit-status.ts'
import type { ExecOutcome } from '../../shared/contract/exec.ts'

test('reports missing output bytes as a gap before the exit event', async () => {
  async function* broken() {
    yield Buffer.from('id: 3-1\nevent: stdout\ndata: {"text":"abc"}\n\n')
    throw new Error('the connection broke')
  }
  const ended = { id: 'exec_1', status: 'exited', exit_code: 7, stdout_bytes: 10, stderr_bytes: 1 }
  const events = passEvents(Readable.from(broken()) as IncomingMessage, {
    signal: new AbortController().signal,
    exitStatusWithoutWorker: async () => ended as never,
  })
  const told = (await text(events)).split('\n\n').filter(Boolean)
  expect(told.map((event) => event.split('\n').slice(0, 2))).toEqual([
    ['id: 3-1', 'event: stdout'],
    ['id: 10-1', 'event: gap'],
    ['id: 10-1', 'event: exit'],
  ])
  expect(told[1]).toContain('"stdout_bytes":7,"stderr_bytes":0')
})

const reason = 'the end of its stderr was not received, so stderr may be incomplete'
const cut: ExecOutcome = {
  ...{ id: 'exec_1', status: 'exited', exit_code: 6, signal: null, reason, truncated: true },
  ...{ pid: 7, start_error: null },
  ...{ stdout_bytes: 3, stderr_bytes: 0, started_at: '2026-11-24T12:00:00.000Z', duration_ms: 5 },
}

test('events, exec results and tool results have a field that indicates truncated output', () => {
  expect(writeLastEvents(cut, '3-0').toString()).toMatch(/^id: 3-0\nevent: exit\ndata: .*"truncated":true/)
  expect(cutToSize({ ...cut, stdout: 'abc', stderr: '' }).result).toMatchObject({ truncated: true, reason })
  // The row may hold the reason even if the worker does not know that it counts as lost.
  const row = { ...cut, started_at: new Date(cut.started_at) } as never
  expect(preferRow({ ...cut, reason: null, truncated: false }, row)).toMatchObject({
    truncated: true,
    reason,
  })
})

test("the client exits with the command's exit code even if the output is truncated", () => {
  const notes: string[] = []
  noteExitStatus(cut, (note) => notes.push(note))
  expect(notes).toEqual([`sandlot: ${reason}`])
  expect(exitCodeOf(cut)).toBe(6)
  expect(describeExit(cut)).toBe(`exited 6: ${reason}`)
  expect(describeExit({ ...cut, reason: null })).toBe('exited 6')
  expect(describeExit({ ...cut, status: 'signaled', signal: 'SIGHUP', reason: null })).toBe('signaled SIGHUP')
})
