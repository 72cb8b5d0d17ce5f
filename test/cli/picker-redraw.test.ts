/**
 * Tests which program and session receive keys, and redrawing after another program has used the terminal.
 */
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { clientPath } from './client.ts'
import { openScreen, type Screen } from './screen.ts'
import { makeUsers, shareSession } from './users.ts'

const world = shareWorld({ env: { QUOTA_CONCURRENT_SANDBOXES: '5' } })
const user = shareSession(makeUsers(world))

/** Asserts that the frame fills the screen without shifted, broken or stale rows. */
async function expectWhole(screen: Screen, top: RegExp) {
  const isWhole = () => {
    const rows = screen.rows()
    const isFramed = top.test(rows[0]!) && rows.filter((row) => top.test(row)).length === 1
    return screen.isAlternate() && isFramed && / (q quit|q back|Esc back)$/.test(rows.at(-1)!)
  }
  await world.eventually(isWhole, 10_000).catch(() => expect(screen.text()).toBe('the whole frame'))
  expect(screen.emulator.buffer.active.length).toBe(24)
}

test('the picker redraws the whole screen after Ctrl-Z, an editor or a shell', async () => {
  const editor = join(user.home.folder, 'editor')
  // Moves the cursor to the middle of a line, and leaves a color and a scroll region.
  const residue = '\\033[31m\\033[5;9r\\033[20;30Hhalf a line'
  writeFileSync(editor, `#!/bin/sh\nprintf '${residue}'; read line; printf '${residue}'\n`)
  chmodSync(editor, 0o755)
  expect(await user.run(['exec', '-c', 'echo hello > note'])).toMatchObject({ code: 0 })
  const list = new RegExp(`^${user.email} .* \\d/5 sessions`)
  using host = openScreen(
    ['bash', '--norc', '--noprofile', '-i'],
    user.home.environment({ PS1: 'host> ', EDITOR: editor }),
  )
  await host.shows(/^host>$/m)
  host.type(`'${process.execPath}' '${clientPath}'\r`)
  await host.shows(/^›sbx_/m)

  host.type('\u001a')
  await host.shows(/Stopped[\s\S]*\nhost>\n/)
  expect(host.isAlternate()).toBe(false)
  host.type("printf '%s here; ' left; fg\r")
  await expectWhole(host, list)
  host.type('x\u001a')
  await host.shows(/Stopped[\s\S]*Stopped[\s\S]*\nhost>\n/)
  host.type('fg\r')
  await host.shows(/^› sbx_\S+ \$ ▏/m)
  host.type('\u001b')
  await expectWhole(host, list)

  host.type('f')
  await host.shows(/note +6 B/)
  host.type('e')
  await host.shows('half a line')
  host.type('\r')
  await host.shows(`${user.id}:/workspace/note is unchanged.`)
  await expectWhole(host, new RegExp(`^‹ ${user.id} `))
  host.type('q')
  await expectWhole(host, list)

  // Keys typed before the shell is ready go to the shell, not to the picker.
  host.type('secho q$((6*7)) qqq\r')
  await host.shows('q42 qqq')
  expect(host.text()).toContain(`a shell in ${user.id}`)
  host.type('printf half; exit 3\r')
  await host.shows(`The shell in ${user.id} has ended: exit 3.`)
  await expectWhole(host, list)

  // A new session appears above. The selection must not move to another session.
  const short = (await user.run(['session', 'create', '--name', 'short'])).stdout.trim()
  await host.shows(/^ short /m)
  await host.shows(/^›sbx_/m)
  host.type('k')
  await host.shows(/^›short /m)
  host.type('s')
  await host.shows('a shell in short')
  host.type('echo $((40+2))\r')
  await host.shows(/^42$/m)
  host.type('half a li')
  await host.shows(/half a li$/m)
  await world.db.query('update sandbox set expires_at = sandlot_now() where id = ?', [short])
  await host.shows(/! The shell in short has ended with its session: its TTL has expired/)
  // The remaining keys were meant for the shell.
  host.type('nqq; echo this is the host')
  await host.shows('Enter continues')
  host.type('\r')
  await host.hides('Enter continues')
  await expectWhole(host, list)
  host.type('q')
  await host.shows(/^host>$/m)
  expect(host.isAlternate()).toBe(false)
  expect(host.raw()).not.toContain('this is the host')
  host.type('exit\r')
  expect(await host.ended).toBe(0)
})
