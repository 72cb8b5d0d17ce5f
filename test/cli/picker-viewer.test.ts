import { readFileSync } from 'node:fs'
import { join } from 'node:path'
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

async function runCommand(screen: Screen, command: string): Promise<void> {
  screen.type('x')
  await screen.shows('a command for /bin/sh')
  screen.type(`${command}\r`)
}

/** Palette index of the first letter of the row, or -1 for the default color. */
function colorOf(screen: Screen, start: string): number {
  const row = screen.rows().findIndex((each) => each.startsWith(start))
  const cell = screen.emulator.buffer.active
    .getLine(screen.emulator.buffer.active.viewportY + row)!
    .getCell(0)!
  return cell.isFgDefault() ? -1 : cell.getFgColor()
}

test('the picker opens a file in `less` without control sequences, and resumes afterward', async () => {
  const big =
    'seq 300000 | sed "s/^/line /" > big; printf "\\033[2J\\033]0;title\\007\\033[31mred line\\033[m\\n" >> big'
  expect(await user.run(['exec', '-c', `mkdir viewed; cd viewed; ${big}`])).toMatchObject({ code: 0 })
  using screen = await openPicker()
  screen.type('f')
  await screen.shows('› viewed/')
  screen.type('\r')
  await screen.shows(/ big +3\.3 MiB/)
  for (const key of ['\r', 'v']) {
    screen.type(key)
    await screen.shows(/^line 1\nline 2\n/m)
    screen.type('G')
    await screen.shows(/^line 300000\nred line$/m)
    expect(colorOf(screen, 'red line')).toBe(1)
    screen.type('q')
    await screen.shows('[Files]')
  }
  expect(screen.raw()).not.toContain('title\u0007')
  screen.type('h')
  await screen.shows(/^› viewed\/$/m)
  screen.type('qq')
  expect(await screen.ended).toBe(0)
})

test('the picker opens the whole output in $PAGER', async () => {
  const kept = join(user.home.folder, 'paged')
  using screen = await openPicker({ PAGER: `tee '${kept}' | wc -l; read x </dev/tty` })
  await runCommand(screen, 'echo error >&2; seq 300000')
  await screen.shows(/✓ exit 0 .* of 300001$/m)
  await screen.shows(/^299999\n300000$/m)
  screen.type('g')
  await screen.shows(/line 298002 of 300001\n298\d\d\d\n/)
  screen.type('v')
  await screen.shows(/^300001$/m)
  screen.type('\r')
  await screen.shows(/✓ exit 0 .* of 300001$/m)
  const all = Array.from({ length: 300_000 }, (_, n) => `${n + 1}\n`).join('')
  expect(readFileSync(kept, 'utf8').replace('error\n', '')).toBe(all)
  screen.type('qq')
  expect(await screen.ended).toBe(0)
})

test("if the pager is missing, the picker's error names the pager", async () => {
  using screen = await openPicker({ PAGER: 'no-such-pager' })
  await runCommand(screen, 'echo short')
  await screen.shows(/✓ exit 0/)
  screen.type('v')
  await screen.shows('! The pager `no-such-pager` exited with 127. To use another pager, set PAGER.')
})

test.each([
  ['keeps colors but removes other control sequences', {}, [1, 208, -1]],
  ['removes colors if NO_COLOR is set', { NO_COLOR: '1' }, [-1, -1, -1]],
])('the output page %s', async (_, env, colors) => {
  using screen = await openPicker(env)
  const red = '\\033[31mred\\033[2J\\033]0;title\\007 line\\n'
  const orange = '\\033[1;38;5;208morange\\033[0m\\033[8m line\\n'
  await runCommand(screen, `printf '${red}${orange}plain line\\n'`)
  await screen.shows(/^red line\norange line\nplain line$/m)
  expect(['red', 'orange', 'plain'].map((start) => colorOf(screen, `${start} line`))).toEqual(colors)
  expect(screen.raw()).not.toContain('title\u0007')
  expect(screen.raw()).not.toContain('\u001b[8m')
})
