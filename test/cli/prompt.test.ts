/** Questions at a real pseudo-terminal. */
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { clientPath, Home } from './client.ts'
import { openTerminal } from './terminal.ts'

const password = 'correct horse battery'
const client = (...args: string[]) => [process.execPath, clientPath, ...args]

test('the terminal of these tests echoes what is typed, unless a program turns that off', async () => {
  using home = new Home()
  const terminal = openTerminal(
    ['sh', '-c', 'echo ready; read line; echo "got $line" | tr a-z A-Z'],
    home.environment(),
  )
  await terminal.shows('ready')
  terminal.type(`${password}\n`)
  await terminal.shows('GOT CORRECT')
  expect(terminal.screen()).toContain(password)
  await terminal.ended
})

test.each([
  ['signup', ['signup', '--url', 'http://127.0.0.1:1']],
  ['keys ls', ['keys', 'ls', '--url', 'http://127.0.0.1:1']],
])('%s asks for email and password, and never echoes the password', async (_, args) => {
  using home = new Home()
  const terminal = openTerminal(client(...args), home.environment())
  await terminal.shows('Email')
  terminal.type('alice@example.com\r')
  await terminal.shows('Password')
  // ctrl+t is the key that shows the password in the library's own prompt.
  for (const letter of ['\u0014', ...password]) terminal.type(letter)
  terminal.type('\r')
  await terminal.shows('Nothing listens')
  expect(await terminal.ended).toBe(8)
  const screen = stripVTControlCharacters(terminal.screen())
  expect(screen).toContain('alice@example.com')
  for (const part of [password, 'correct', 'horse', 'battery', '***']) expect(screen).not.toContain(part)
})

test.each([
  ['ctrl-c', '\u0003'],
  ['ctrl-d', '\u0004'],
])('%s at a question ends with 130', async (_, key) => {
  using home = new Home()
  const terminal = openTerminal(client('signup', '--url', 'http://127.0.0.1:1'), home.environment())
  await terminal.shows('Email')
  terminal.type(key)
  expect(await terminal.ended).toBe(130)
  expect(terminal.screen()).toContain('Interrupted')
})

test('session rm asks first, and a no destroys nothing', async () => {
  using home = new Home()
  const terminal = openTerminal(
    client('session', 'rm', 'sbx_a', '--url', 'http://127.0.0.1:1', '--api-key', 'sandlot_live_x'),
    home.environment(),
  )
  await terminal.shows('Destroy sbx_a?')
  terminal.type('\r')
  expect(await terminal.ended).toBe(1)
  expect(terminal.screen()).toContain('Nothing was destroyed')
})

test('set-key without a key asks for it without echo', async () => {
  using home = new Home()
  const terminal = openTerminal(client('config', 'set-key'), home.environment())
  await terminal.shows('API key')
  terminal.type(`sandlot_live_abc${'x'.repeat(42)}mnop\r`)
  expect(await terminal.ended).toBe(0)
  expect(terminal.screen()).not.toContain('sandlot_live_abc')
  expect((await home.run(['config', 'show', '--json'])).json().api_key.value).toBe('…mnop')
})
