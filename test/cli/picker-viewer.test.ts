/** Looking through files and output in the picker, on a real terminal. */
import { expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { clientPath } from './client.ts'
import { openScreen, type Screen } from './screen.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld()
const user = shareSession(makeUsers(world))

async function openPicker(env: Record<string, string> = {}): Promise<Screen> {
  const screen = openScreen([process.execPath, clientPath], user.home.environment(env))
  await screen.shows(/^›sbx_/m)
  return screen
}

/** The colour of the first letter of the row that begins so, as the terminal's palette numbers it; -1 without one. */
function colorOf(screen: Screen, start: string): number {
  const row = screen.rows().findIndex((each) => each.startsWith(start))
  const cell = screen.emulator.buffer.active
    .getLine(screen.emulator.buffer.active.viewportY + row)!
    .getCell(0)!
  return cell.isFgDefault() ? -1 : cell.getFgColor()
}

test('a file of any size opens at its first line, and is read on both ways', async () => {
  const made = await user.run(['exec', '-c', 'mkdir looked; cd looked; seq 300000 | sed "s/^/line /" > big'])
  expect(made).toMatchObject({ code: 0 })
  using screen = await openPicker()
  screen.type('f')
  await screen.shows('▸ looked/')
  screen.type('\r')
  await screen.shows(/ big +3\.3 MiB/)
  screen.type('j\r')
  await screen.shows(/^line 1\nline 2\n/m)
  await screen.shows('line 1 of 300000')
  screen.type(' ')
  await screen.hides(/^line 1$/m)
  await screen.shows(/^line 30$/m)
  screen.type('G')
  await screen.shows(/^line 299999\nline 300000$/m)
  screen.type('\u001b[5~')
  await screen.hides(/^line 300000$/m)
  await screen.shows(/^line 299960$/m)
  // Beyond what was read at once.
  screen.type('\u001b[5~'.repeat(60))
  await screen.shows(/line 29[0-8]\d\d\d of 300000/)
  await screen.shows(/^line 29[0-8]\d\d\d$/m)
  screen.type('g')
  await screen.shows(/^line 1\nline 2\n/m)
  screen.type('r')
  await screen.shows('line 1 of 300000')
  screen.type('qq')
  await screen.shows('SESSIONS')
  screen.type('q')
  expect(await screen.ended).toBe(0)
})

test('what a command printed earlier is read again where one looks at it', async () => {
  using screen = await openPicker()
  screen.type('x')
  await screen.shows('a line for /bin/sh')
  screen.type('seq 300000\r')
  await screen.shows(/✓ exit 0 .* of 300000$/m)
  await screen.shows(/^299999\n300000$/m)
  screen.type('g')
  await screen.shows(/line 1 of 300000\n1\n2\n3$/m)
  screen.type(' ')
  await screen.shows(/^22\n23\n24$/m)
  screen.type('G')
  await screen.shows(/^299999\n300000$/m)
  screen.type('qq')
  expect(await screen.ended).toBe(0)
})

test.each([
  ['are kept, and nothing else of it steers the terminal', {}, [1, 208, -1]],
  ['are left out where NO_COLOR says so', { NO_COLOR: '1' }, [-1, -1, -1]],
])('colours of output %s', async (_, env, colors) => {
  using screen = await openPicker(env)
  screen.type('x')
  await screen.shows('a line for /bin/sh')
  const red = '\\033[31mred\\033[2J\\033]0;title\\007 line\\n'
  const orange = '\\033[1;38;5;208morange\\033[0m\\033[8m line\\n'
  screen.type(`printf '${red}${orange}plain line\\n'\r`)
  await screen.shows(/^red line\norange line\nplain line$/m)
  expect(['red', 'orange', 'plain'].map((start) => colorOf(screen, `${start} line`))).toEqual(colors)
  expect(screen.raw()).not.toContain('title\u0007')
  expect(screen.raw()).not.toContain('\u001b[8m')
})
