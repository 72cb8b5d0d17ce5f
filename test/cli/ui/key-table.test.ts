/** The table of keys, and what is made from it. */
import { expect, test } from 'vitest'
import { helpLines } from '../../../cli/ui/help.ts'
import { commandLines, keys, keysOf, type Where } from '../../../cli/ui/keys.ts'
import { command, session, sessionPage, stateWith } from './sample.ts'

const everywhere: Where[] = ['first-run', 'list', 'commands', 'files', 'output', 'file']

test.each(everywhere)('no key does two things in %s', (where) => {
  const names = keysOf(where).flatMap(({ keys }) => keys)
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
})

test('the list has the keys that it should', () => {
  const names = keysOf('list').flatMap(({ keys }) => keys)
  const wanted = [
    'up',
    'down',
    'j',
    'k',
    'pageup',
    'pagedown',
    'g',
    'G',
    'return',
    'n',
    'd',
    's',
    'x',
    'f',
    '/',
    'y',
    'c',
    'r',
    'a',
    '?',
    'escape',
    'q',
  ]
  expect(wanted.filter((name) => !names.includes(name))).toEqual([])
})

test('help has a line for each key of the page, and nothing else', () => {
  expect(helpLines(stateWith([])).map(({ label }) => label)).toEqual(
    keys.filter(({ where }) => where.includes('list')).map(({ label }) => label),
  )
})

test('the list knows the command line of what its keys do', () => {
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
    c: 'sandlot session ls',
  })
})

test('a command that was run has its command line, quoted', () => {
  const { id } = session()
  const page = sessionPage(id, { commands: [command({ command: `echo "it's"` })] })
  const lines = commandLines(stateWith([session()], { pages: [page] }))
  expect(lines.find(({ key }) => key.keys.includes('return'))?.text).toBe(
    `sandlot exec -s ${id} -c 'echo "it'\\''s"'`,
  )
})
