/** Renders the pictures for README and docs/cli.md (`npm run docs -- --pictures`). */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { setClock } from '../support/clock.ts'
import { startWorld } from '../support/index.ts'
import { clientPath, Home } from './client.ts'
import { openScreen } from './screen.ts'
import { toSvg } from './svg.ts'
import { makeUsers } from './users.ts'

const folder = process.env.SANDLOT_SCREENSHOTS

const sessions = [
  { name: 'fuzz', ttl: '4m', command: 'for i in 1 2 3; do echo round $i; done; exit 1' },
  { name: 'docs', ttl: '12m', command: 'ls -la' },
  { name: 'tests', ttl: '20m', command: 'echo 214 passed' },
  { name: 'web', ttl: '30m', command: 'mkdir -p src && echo "hello" > src/main.txt && ls -R' },
]

test.skipIf(folder === undefined)('renders the screenshots for the documentation', async () => {
  await using world = await startWorld({ env: { QUOTA_CONCURRENT_SANDBOXES: '10' } })
  using home = new Home()
  await makeUsers(world).signUp(home, 'ada@example.com')
  for (const { name, ttl, command } of sessions) {
    const { stdout } = await home.run(['session', 'create', '--name', name, '--ttl', ttl])
    await home.run(['exec', '-s', stdout.trim(), '-c', 'uname -a'])
    await home.run(['exec', '-s', stdout.trim(), '-c', command])
  }
  // Gives the sessions different remaining times.
  await setClock(world.db, new Date(Date.now() + 190_000), { running: true })
  using screen = openScreen([process.execPath, clientPath], home.environment(), { columns: 100, rows: 14 })
  const keep = (file: string, title: string) =>
    writeFileSync(join(folder!, file), toSvg(screen.emulator, title))

  await screen.shows(/fuzz .*for i in/)
  keep('picker.svg', 'The list: sessions with image, age, time left and last command')
  screen.type('\r')
  await screen.shows(/exit 0 .* mkdir/)
  keep('picker-session.svg', 'A session: facts, time left and its commands')
  screen.type('\r')
  await screen.shows(/line \d+ of \d+/)
  keep('picker-output.svg', 'The output of a command')
  screen.type('qc')
  await screen.shows('sandlot files ls')
  keep('picker-copy.svg', 'The command lines equivalent to the keys')
  screen.type('\u001b')
  await screen.shows('[Commands]')
  screen.type('qq')
  expect(await screen.ended).toBe(0)
})
