import { describe, expect, test } from 'vitest'
import { newFolder } from '../../../cli/ui/folder.ts'
import type { OutputPage } from '../../../cli/ui/state.ts'
import { draw, drawRows, sized } from './draw.tsx'
import { command, ended, entry, outputPage, session, sessionPage, stateWith, tailOf } from './sample.ts'

const web = session({ metadata: { team: 'blue' } })
const on = (page: Parameters<typeof sessionPage>[1]) =>
  stateWith([web], { pages: [sessionPage(web.id, page)] })

test("the session page shows the session's details, remaining time and commands", () => {
  const rows = drawRows(
    on({
      commands: [
        command({ id: 'exec_2', status: 'running', exit_code: null, command: 'sleep 60' }),
        command({ exit_code: 2 }),
      ],
    }),
  )
  expect(rows[0]).toMatch(/^‹ web +█{13}░{3} 25:00$/)
  expect(rows[1]).toBe(`${web.id}  debian:bookworm-slim`)
  expect(rows[2]).toBe('created 5m ago, ready after 300 ms, 300 s billed')
  expect(rows[3]).toBe('team=blue')
  expect(rows[4]).toBe('[Commands]  Files')
  expect(rows[5]).toMatch(/^›▸ running +4m +sleep 60$/)
  expect(rows[6]).toMatch(/^ ✗ exit 2 +4m +1\.2 s npm test$/)
})

test.each([
  ['expired', null, 'its TTL has expired'],
  ['idle', null, 'its idle timeout has expired'],
  ['requested', null, 'it was destroyed on request'],
  ['pod_failed', 'OOMKilled', 'its pod failed (OOMKilled)'],
  ['start_failed', 'no image', 'it could not be started (no image)'],
  ['suspended', null, 'the account was suspended'],
] as const)('the session page describes the end reason %s', (destroy_reason, destroy_detail, words) => {
  const gone = ended({ destroy_reason, destroy_detail })
  const screen = draw(stateWith([gone], { pages: [sessionPage(gone.id)] }))
  expect(screen).toMatch(/! Ended at [\d:]{8}/)
  expect(screen).toContain(words)
})

describe('the output page', () => {
  const output = tailOf(Array.from({ length: 100 }, (_, line) => `line ${line + 1}\n`).join(''))
  const page = (top: OutputPage['top']) => outputPage({ id: web.id, command: 'seq 100', output, top })

  test('the output page stays scrolled to the end as output arrives', () => {
    const rows = drawRows(stateWith([web], { pages: [page('end')] }))
    expect(rows[0]).toBe('‹ web $ seq 100')
    expect(rows[1]).toBe('▸ running · line 80 of 100')
    expect(rows[22]).toBe('line 100')
  })

  test("the output page's help offers an interrupt only for a running command", () => {
    const help = (change: Partial<OutputPage>) =>
      draw(stateWith([web], { pages: [{ ...page('end'), ...change }], dialog: { kind: 'help', top: 0 } }))
    expect(help({})).toMatch(/^i +interrupt the command$/m)
    expect(help({ isRunning: false })).toMatch(/^i +interrupt the command \(not now\)$/m)
  })

  test("the output page keeps the user's scroll position", () => {
    const rows = drawRows(stateWith([web], { pages: [page(10)] }))
    expect(rows[2]).toBe('line 10')
  })
})

test('the session page lists folders before files', () => {
  const entries = [entry('a.txt', 'file'), entry('src', 'directory'), entry('main.c', 'file', { size: 7 })]
  const rows = drawRows(on({ tab: 'files', folder: { ...newFolder('/workspace'), entries } }))
  expect(rows.slice(4, 9).map((row) => row.replace(/ {2,}(?=\d)/, ' '))).toEqual([
    ' Commands  [Files]',
    '/workspace',
    '› src/',
    '  a.txt 2.0 KiB',
    '  main.c 7 B',
  ])
})

test('at 40 columns and 12 rows, the session list and session page keep the essential columns', () => {
  const list = drawRows(sized(stateWith([web]), 40, 12))
  expect(list).toHaveLength(12)
  expect(list.find((row) => row.startsWith('›web'))).toMatch(/5m ████░ 25:00$/)
  const page = drawRows(sized(on({ commands: [command()] }), 40, 12))
  expect(page[0]).toMatch(/^‹ web +█{5}░ 25:00$/)
  expect(page.join('\n')).toContain('npm test')
})
