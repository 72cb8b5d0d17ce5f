/** Which lines of `sandlot exec` run a program, and which are `exec ls`, `logs` and `kill`: the words decide. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Home } from './client.ts'
import { startPeer } from './peer.ts'

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

/** What the line asked the service first. */
async function ask(args: string[]) {
  peer.asked.length = 0
  const env = { SANDLOT_URL: peer.url, SANDLOT_API_KEY: 'sandlot_live_x', SANDLOT_SESSION: 'sbx_a' }
  const ran = await home.run(['exec', ...args], { env })
  const [first] = peer.asked
  return { ...ran, line: first?.line, command: first?.body ? JSON.parse(first.body).command : undefined }
}

test.each([
  [['ls', '-la', '--help']],
  [['ls', '-s', 'src']],
  [['ls', '--limit']],
  [['kill', '-9', '42']],
  [['--', 'ls']],
  [['--', 'kill', execId]],
  [['-s', 'sbx_a', '--', 'ls', '--json']],
  [['--cwd', '/tmp', 'ls']],
  [['ls', '-s', 'build']],
  [['-n', 'logs', execId]],
])('%j runs a program', async (args) => {
  const isWord = (word: string) => ['ls', 'logs', 'kill'].includes(word)
  const command = args.slice(args.findIndex(isWord))
  expect(await ask(args)).toMatchObject({ line: `POST ${base}`, command, code: 125 })
})

test.each([
  [['ls'], `GET ${base}?limit=100`],
  [['ls', '--session', 'sbx_b', '--limit', '3'], 'GET /v1/sandboxes/sbx_b/exec?limit=3'],
  [['--json', '--session=sbx_b', 'ls'], 'GET /v1/sandboxes/sbx_b/exec?limit=100'],
  [['logs', execId, '--follow'], `GET ${base}/${execId}`],
  [['-s', 'sbx_b', 'logs', '-f', execId], `GET /v1/sandboxes/sbx_b/exec/${execId}`],
  [['kill', execId], `DELETE ${base}/${execId}?signal=TERM`],
  [['kill', '--signal', 'sigint', execId], `DELETE ${base}/${execId}?signal=INT`],
  [['kill', execId, '--signal=9'], `DELETE ${base}/${execId}?signal=KILL`],
])('%j is a subcommand', async (args, line) => {
  // No such session: 3, as with every command but a run.
  expect(await ask(args)).toMatchObject({ line, code: 3 })
})

test.each([
  [['logs'], 2],
  [['kill', '--json'], 2],
  [['kill', '-9', execId], 2],
  [['logs', execId, execId], 2],
  [['ls', '--limit', '0'], 2],
  [['logs', 'exec_unknown'], 3],
])('%j asks for nothing and exits %i, also with --json', async (args, code) => {
  const { line, json, stderr, ...ran } = await ask(['--json', ...args])
  expect(line).toBeUndefined()
  expect(ran.code).toBe(code)
  expect(json().error.exit_code).toBe(code)
  expect(stderr).toMatch(/^sandlot: .*\n`sandlot exec|^sandlot: --limit/)
})

test.each(['ls', 'kill'])('exec %s --help is the help of the subcommand', async (name) => {
  const [flag, word] = await Promise.all([ask([name, '--help']), home.run(['help', 'exec', name])])
  expect(flag).toMatchObject({ code: 0, stderr: '', line: undefined })
  expect(flag.stdout).toContain(`Usage: sandlot exec ${name}`)
  expect(word.stdout).toBe(flag.stdout)
})
