import { describe, expect, test } from 'vitest'
import { draw, drawRows, sized } from './draw.tsx'
import { account, command, ended, many, now, session, start, stateWith } from './sample.ts'

const web = session()
const second = session({ id: 'sbx_01kb0000000000000000000002', name: null, image: 'node:24' })

test('the session list shows `loading` inside its frame until the first response', () => {
  const rows = drawRows({ ...stateWith([]), account: undefined, sessions: undefined })
  expect(rows).toHaveLength(24)
  expect(rows[0]).toContain('http://localhost:8080')
  expect(rows[0]).toContain('loading…')
  expect(rows[2]).toContain('SESSIONS')
  expect(rows[3]).toBe('  loading…')
})

test('a session row shows the name or id, image, age, a remaining-time bar, and the last command', () => {
  const state = stateWith([web, second], {
    selected: web.id,
    lastCommands: new Map([
      [web.id, command({ status: 'exited', exit_code: 1 })],
      [second.id, null],
    ]),
  })
  const rows = drawRows(sized(state, 100, 24))
  const line = rows.find((row) => row.includes('web'))
  expect(line).toMatch(/^›web\s+debian\S+\s+5m ███████░ 25:00\s+✗ npm test$/)
  expect(rows.find((row) => row.includes('sbx_'))).toMatch(/^ sbx_01\S*…\S*02 +node:24 +5m .* –$/)
})

test('at 120 columns, the session list shows the full image name unless it exceeds a third of the width', () => {
  const rowOf = (image: string, columns: number) =>
    drawRows(sized(stateWith([session({ image })]), columns, 24)).find((row) => row.includes('web'))
  expect(rowOf('debian:bookworm-slim', 120)).toContain(' debian:bookworm-slim ')
  expect(rowOf('registry.example.com/team/img:24', 120)).toContain(' registry.example.com/team/img:24 ')
  expect(rowOf('debian:bookworm-slim', 80)).toMatch(/ debian…-slim /)
  expect(rowOf(`registry.example.com/${'x'.repeat(99)}`, 120)).toMatch(/ …$/)
})

test('an asterisk marks the current session while the session is active', () => {
  const marked = (chosen: string, sessions = [web, second]) =>
    drawRows(stateWith(sessions, { chosen, showsDestroyed: true })).filter((row) => row.includes(' * '))
  expect(marked(web.id)).toEqual([expect.stringMatching(/^.web \* +debian/)])
  expect(marked('web')).toHaveLength(1)
  expect(marked(second.id)).toEqual([expect.stringMatching(/^.sbx_\S+ \* +node/)])
  expect(marked('web', [ended(), second])).toEqual([])
})

test('the header shows the account, and its session and hour limits as bars and numbers', () => {
  expect(drawRows(stateWith([web]))[0]).toMatch(
    /^ada@example\.com +2\/5 sessions █{4}░{7} {2}3\.2\/20 h of the month █{2}░{9}$/,
  )
  const full = { ...account, concurrent: { active: 5, limit: 5 } }
  expect(drawRows(stateWith([web], { account: full }))[0]).toContain(`5/5 sessions ${'█'.repeat(11)} `)
})

test('the remaining time of a session counts down', () => {
  const at = (ms: number) => draw(stateWith([web]), start + ms)
  expect(at(0)).toContain('████████ 30:00')
  expect(at(15 * 60_000)).toContain('████░░░░ 15:00')
  expect(at(29 * 60_000 + 59_001)).toContain('░░░░░░░░ 0:01')
  expect(at(30 * 60_000)).toContain('░░░░░░░░ ending')
})

test('the session list shows that a session is starting', () => {
  expect(draw(stateWith([session({ ready_at: null })]))).toContain('starting…')
})

test('the session list shows destroyed sessions only on request', () => {
  const state = stateWith([web, ended({ id: 'sbx_old', name: 'old' })])
  expect(draw(state)).not.toContain('old')
  const rows = drawRows({ ...state, showsDestroyed: true })
  expect(rows.find((row) => row.includes('old'))).toContain('expired 1m ago')
  expect(rows[2]).toContain('1 of 2')
})

test('a filter matches sessions that contain all of its words, ignoring case', () => {
  const state = stateWith([web, session({ id: 'sbx_2', name: 'db', metadata: { team: 'Blue' } })])
  const shown = (filter: string) => draw({ ...state, filter })
  expect(shown('WEB')).toContain('web')
  expect(shown('WEB')).not.toContain(' db ')
  expect(shown('blue d')).toContain('db')
  expect(shown('blue web')).toContain('No session matches the filter')
})

test('the session list shows only the sessions around the selected one, one per row', () => {
  const sessions = many(1000)
  const rows = drawRows(stateWith(sessions, { selected: sessions[500]!.id }))
  expect(rows).toHaveLength(24)
  expect(rows[2]).toContain('500 of 1000')
  expect(rows.filter((row) => row.includes('job-'))).toHaveLength(20)
  expect(rows.find((row) => row.startsWith('›'))).toContain('job-500')
})

describe('an unreachable service', () => {
  const state = stateWith([web], {
    trouble: { isUnavailable: true, since: now - 42_000, message: 'Nothing listens.' },
  })

  test('the session list shows when an outage began, and keeps the loaded sessions', () => {
    expect(draw(sized(state, 120, 24))).toMatch(
      /! Service unavailable since [\d:]{8} \(42s\), retrying\. Nothing listens\./,
    )
    expect(draw(state)).toContain('web')
  })

  test('at 80 columns, the session list shows the full reason for an outage on separate rows', () => {
    const message = 'Nothing listens at http://localhost:8080: the connection was refused. Is the service up?'
    const rows = drawRows({ ...state, trouble: { ...state.trouble!, message } })
    const at = rows.findIndex((row) => row.startsWith('! Service unavailable'))
    expect(rows[at]).toMatch(/retrying\.$/)
    expect(`${rows[at + 1]!.trim()} ${rows[at + 2]!.trim()}`).toBe(message)
  })

  test('the session list does not show `loading` during an outage before the first response', () => {
    const text = draw({ ...state, account: undefined, sessions: undefined })
    expect(text).not.toContain('loading')
    expect(text).toContain('The sessions are not loaded yet: the service does not answer.')
  })
})
