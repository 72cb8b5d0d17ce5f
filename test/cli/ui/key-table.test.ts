import { expect, test } from 'vitest'
import { newFolder } from '../../../cli/ui/folder.ts'
import { applicableKeys, commandLines, keysOf, type Where } from '../../../cli/ui/keys.ts'
import type { Page, State } from '../../../cli/ui/state.ts'
import { command, ended, entry, outputPage, session, sessionPage, stateWith } from './sample.ts'

const everywhere: Where[] = ['first-run', 'list', 'commands', 'files', 'output']

test.each(everywhere)('no key has two actions on the %s page', (where) => {
  const names = keysOf(where).flatMap(({ keys }) => keys)
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
})

test('the session list supports the expected navigation and action keys', () => {
  const names = keysOf('list').flatMap(({ keys }) => keys)
  const required = 'up down j k pageup pagedown g G return n d s x f / u y c r a ? escape q'.split(' ')
  expect(names).toEqual(expect.arrayContaining(required))
})

test('the session list shows the equivalent command line for each key', () => {
  const { id } = session()
  const lines = Object.fromEntries(
    commandLines(stateWith([session()])).map(({ key, text }) => [key.keys[0], text]),
  )
  expect(lines).toEqual({
    return: `sandlot session get ${id}`,
    n: 'sandlot session create',
    s: `sandlot exec -it -s ${id} -- sh`,
    x: `sandlot exec -s ${id} -c COMMAND`,
    f: `sandlot files ls -s ${id}`,
    d: `sandlot session rm --yes ${id}`,
    u: `sandlot session use ${id}`,
    c: 'sandlot session ls',
  })
})

test.each([
  [{ command: `echo "it's"` }, 'exec', `-c 'echo "it'\\''s"'`],
  [{ tty: true, status: 'running', exit_code: null }, 'attach', 'exec_1'],
] as const)('the key table shows the CLI equivalent of pressing Enter for %j: %s', (change, word, rest) => {
  const { id } = session()
  const page = sessionPage(id, { commands: [command(change)] })
  const lines = commandLines(stateWith([session()], { pages: [page] }))
  const line = lines.find(({ key }) => key.keys.includes('return'))
  expect(line?.text).toBe(`sandlot ${word} -s ${id} ${rest}`)
})

test('the key table shows no command line for a file whose name is not UTF-8', () => {
  const { id } = session()
  const entries = [entry('caf\ufffd', 'file', { name_base64: 'Y2Fm6Q==' })]
  const folder = { ...newFolder('/workspace'), entries }
  const state = stateWith([session()], { pages: [sessionPage(id, { tab: 'files', folder })] })
  expect(applicableKeys(state).map(({ shown }) => shown)).toContain('Enter v')
  expect(applicableKeys(state).map(({ shown }) => shown)).toContain('e')
  expect(commandLines(state).find(({ text }) => text.includes('caf'))).toBeUndefined()
  expect(commandLines(state).map(({ text }) => text)).toContain(`sandlot files ls -s ${id} /workspace`)
})

const offered = (state: State) =>
  applicableKeys(state)
    .filter(({ short }) => short !== undefined)
    .map(({ shown }) => shown)
    .join(' ')
const onPage = (page: Page, of = session()) => stateWith([of], { pages: [{ at: 'list', pageId: 0 }, page] })

test('the key table shows only keys that apply to the selection', () => {
  const { id } = session()
  expect(offered(stateWith([]))).toBe('n c a ? q')
  expect(offered(stateWith([session()]))).toBe('Enter n s x f d / c a y ? q')
  expect(offered(stateWith([session()], { filter: 'web' }))).toBe('Enter n s x f d / c a y Esc ? q')
  expect(offered(stateWith([ended()], { showsDestroyed: true }))).toBe('Enter n / c a y ? q')
  expect(offered(onPage(sessionPage(id)))).toBe('s x f d Tab c y ? Esc q')
  expect(offered(onPage(sessionPage(id, { commands: [command()] })))).toBe('Enter s x f d Tab c y ? Esc q')
  expect(offered(onPage(sessionPage(id, { commands: [command()] }), ended()))).toBe('Enter c y ? Esc q')
  expect(offered(onPage(outputPage({ id })))).toBe('v i s x c y ? Esc q')
  expect(offered(onPage(outputPage({ id, isRunning: false })))).toBe('v s x c y ? Esc q')
  // The command has ended with its session, even if the page still shows a running command.
  expect(offered(onPage(outputPage({ id }), ended()))).toBe('v c y ? Esc q')
})
