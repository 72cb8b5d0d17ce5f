import { expect, test } from 'vitest'
import { createStore, type State, sessionInFront } from '../../../cli/ui/state.ts'
import { ended, session } from './sample.ts'

const job = (number: number) =>
  session({ id: `sbx_${number}`, name: `job-${number}`, created_at: `2026-11-21T12:0${number}:00.000Z` })
const [first, second, third] = [job(1), job(2), job(3)] as const

function listOf(sessions: State['sessions']) {
  const store = createStore()
  store.set({ sessions })
  return { store, selected: () => sessionInFront(store.get())?.name }
}
const all = (...sessions: (typeof first)[]) => new Map(sessions.map((each) => [each.id, each]))

test('the selected session stays selected when other sessions appear above it', () => {
  const { store, selected } = listOf(all(first, second))
  expect(selected()).toBe('job-2')
  store.set({ sessions: all(first, second, third) })
  expect(selected()).toBe('job-2')
})

test('when the selected session is removed, the session that moves into its row is selected', () => {
  const { store, selected } = listOf(all(first, second, third))
  store.set({ selected: second.id })
  store.set({ sessions: all(first, ended({ ...second, state: 'destroyed' }), third) })
  expect(selected()).toBe('job-1')
  store.set({ sessions: all(third) })
  expect(selected()).toBe('job-3')
})

test('a filter selects the first match, which stays selected when the filter is cleared', () => {
  const { store, selected } = listOf(all(first, second, third))
  store.set({ filter: 'job-1' })
  expect(selected()).toBe('job-1')
  store.set({ filter: '' })
  expect(selected()).toBe('job-1')
})
