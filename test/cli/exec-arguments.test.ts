import { afterAll, beforeAll, expect, test } from 'vitest'
import { clientPath, Home } from './client.ts'
import { startPeer } from './peer.ts'
import { openTerminal } from './terminal.ts'

const execId = `exec_${'0'.repeat(26)}`
const base = '/v1/sandboxes/sbx_a/exec'

let home: Home
let peer: Awaited<ReturnType<typeof startPeer>>
beforeAll(async () => {
  home = new Home()
  const problem = { code: 'not_found', detail: 'None.', request_id: 'req_1', status: 404 }
  peer = await startPeer((_, response) => response.writeHead(404).end(JSON.stringify(problem)))
})
afterAll(async () => {
  await peer[Symbol.asyncDispose]()
  home[Symbol.dispose]()
})

const envOf = ({ url }: { url: string }) => ({
  SANDLOT_URL: url,
  SANDLOT_API_KEY: 'sandlot_live_x',
  SANDLOT_SESSION: 'sbx_a',
})

const running = { id: execId, status: 'running', command: 'make', tty: false }

/** Runs the client against a session with these commands. */
async function askAmong(commands: object[], args: string[]) {
  await using service = await startPeer((_, response) =>
    response.end(JSON.stringify({ data: commands, next_cursor: null, ...commands[0] })),
  )
  const ran = await home.run([...args, '--json'], { env: envOf(service) })
  return { ...ran, asked: service.asked.map(({ line }) => line) }
}

test('`logs` without an id selects the only running command, or lists the candidates', async () => {
  const ended = { ...running, id: `exec_${'1'.repeat(26)}`, status: 'exited' }
  expect(await askAmong([running, ended], ['logs'])).toMatchObject({
    code: 0,
    asked: [`GET ${base}?limit=100`, `GET ${base}/${execId}`],
  })
  const second = { ...running, id: `exec_${'2'.repeat(26)}` }
  const several = await askAmong([running, second, ended], ['logs'])
  expect(several.code).toBe(5)
  expect(several.json().error.message).toBe(
    `Several commands are running:\n  ${execId}  running  make\n  ${second.id}  running  make`,
  )
  const none = await askAmong([ended], ['logs'])
  expect(none.code).toBe(3)
  expect(none.json().error.message).toBe(
    `No command is running. The most recent commands:\n  ${ended.id}  exited  make`,
  )
})

test('`attach` without an id selects the only command with a terminal', async () => {
  const terminal = { ...running, id: `exec_${'2'.repeat(26)}`, tty: true }
  await using service = await startPeer((_, response) =>
    response.end(JSON.stringify({ data: [running, terminal], next_cursor: null })),
  )
  const screen = openTerminal([process.execPath, clientPath, 'attach'], home.environment(envOf(service)))
  await screen.ended
  expect(service.asked.at(-1)!.line).toBe(`GET ${base}/${terminal.id}/attach`)
})

test('`exec -d` on a terminal shows how to follow and how to kill the command', async () => {
  await using service = await startPeer((_, response) => response.end(JSON.stringify(running)))
  const command = [process.execPath, clientPath, 'exec', '-d', 'make']
  const screen = openTerminal(command, home.environment(envOf(service)))
  await screen.shows(execId)
  await screen.shows(`\`sandlot logs -f -s sbx_a ${execId}\` follows its output`)
  await screen.shows(`\`sandlot kill -s sbx_a ${execId}\` ends it`)
  expect(await screen.ended).toBe(0)
})

async function ask(args: string[]) {
  peer.asked.length = 0
  const ran = await home.run(args, { env: envOf(peer) })
  const [first] = peer.asked
  return { ...ran, line: first?.line, command: first?.body ? JSON.parse(first.body).command : undefined }
}

test.each([
  [['ls']],
  [['ls', '--limit', '3']],
  [['ls', '--help']],
  [['ps']],
  [['logs', execId]],
  [['kill', execId]],
  [['kill', '-9', '42']],
  [['--', 'ls']],
  [['-s', 'sbx_a', '--', 'ls', '--json']],
  [['-d', 'ls', '-d']],
  [['--cwd', '/tmp', 'attach', execId]],
  [['--json', 'kill', '--json']],
])('exec %j runs a program in the sandbox instead of the client command of that name', async (args) => {
  const isWord = (word: string) => ['ls', 'ps', 'logs', 'kill', 'attach'].includes(word)
  const command = args.slice(args.findIndex(isWord))
  expect(await ask(['exec', ...args])).toMatchObject({ line: `POST ${base}`, command, code: 125 })
})

test.each([
  [['ps'], `GET ${base}?limit=100`],
  [['ps', '--session', 'sbx_b', '--limit', '3'], 'GET /v1/sandboxes/sbx_b/exec?limit=3'],
  [['logs', execId, '--follow'], `GET ${base}/${execId}`],
  [['logs', '-s', 'sbx_b', '-f', execId], `GET /v1/sandboxes/sbx_b/exec/${execId}`],
  [['kill', execId], `DELETE ${base}/${execId}?signal=TERM`],
  [['kill', '--signal', 'sigint', execId], `DELETE ${base}/${execId}?signal=INT`],
  [['kill', execId, '--signal=9'], `DELETE ${base}/${execId}?signal=KILL`],
])('the client command %j sends the expected API request', async (args, line) => {
  // All commands except exec exit with 3 if the session does not exist.
  expect(await ask(args)).toMatchObject({ line, code: 3 })
})

test.each([
  [['kill', '--json'], 2],
  [['kill', '-9', execId], 2],
  [['logs', execId, execId], 2],
  [['ps', '--limit', '0'], 2],
  [['logs', 'exec_unknown'], 3],
  [['attach', execId], 125],
  [['exec', '--attach', execId], 125],
])(
  'for the invalid command line %j, the client sends nothing and exits with code %i, even with --json',
  async (args, code) => {
    const [name = '', ...more] = args
    const { line, json, stderr, ...ran } = await ask([name, '--json', ...more])
    expect(line).toBeUndefined()
    expect(ran.code).toBe(code)
    expect(json().error.exit_code).toBe(code)
    expect(stderr).toMatch(/^sandlot: /)
  },
)
