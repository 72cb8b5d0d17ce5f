/** Hostile output in `sandlot logs`, on a terminal and in a pipe. */
import { expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { clientPath } from './client.ts'
import { openTerminal } from './terminal.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld()
const user = shareSession(makeUsers(world))

const clipboard = '\u001b]52;c;dG91Y2ggUFdORUQK\u0007'
const mouse = '\u001b[?1000h'
const hidden = '\u001b[8mhidden\u001b[28m'
const red = '\u001b[31mred\u001b[0m'
const stdout = `${clipboard}${mouse}${hidden} ${red} naïve\r\n`
const stderr = `\u001b[2J\u001b[1merror\u001b[0m${clipboard}\n`

/** Starts a command with `sandlot exec -d`, so that only `logs` prints its output. */
async function record(): Promise<string> {
  const script = 'printf %s "$0"; printf %s "$1" >&2'
  const { stdout: id } = await user.run(['exec', '-d', '--', 'sh', '-c', script, stdout, stderr])
  await user.run(['logs', '-f', id.trim()])
  return id.trim()
}

async function onTerminal(args: string[]): Promise<string> {
  const terminal = openTerminal([process.execPath, clientPath, ...args], user.home.environment())
  expect(await terminal.ended).toBe(0)
  return terminal.screen()
}

test.each([[[]], [['-f']]])('on a terminal, `logs` with %j prints text and colors', async (options) => {
  const shown = await onTerminal(['logs', ...options, await record()])
  expect(shown).toContain('hidden \u001b[31mred\u001b[39m naïve\r\n')
  expect(shown).toContain('\u001b[1merror\u001b[22m')
  for (const sequence of [clipboard, '\u001b]', mouse, '\u001b[8m', '\u001b[2J'])
    expect(shown).not.toContain(sequence)
})

test('`logs --raw` prints all bytes unchanged on a terminal', async () => {
  const shown = await onTerminal(['logs', '--raw', await record()])
  expect(shown).toContain(`${clipboard}${mouse}${hidden} ${red} naïve`)
})

test('`logs --color never` prints text without colors on a terminal', async () => {
  const shown = await onTerminal(['logs', '--color', 'never', await record()])
  expect(shown).toContain('hidden red naïve\r\n')
  expect(shown).not.toContain('\u001b')
})
