/** The client's messages refer to commands and options, even where the API refers to JSON fields. */
import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commandSynonyms } from '../../cli/commands/command-synonyms.ts'
import { type Branch, commands } from '../../cli/commands/index.ts'
import { targets } from '../../cli/mcp/targets.ts'
import { limits } from '../../shared/contract/limits.ts'
import { Home, settingsFor } from './client.ts'
import { startPeer } from './peer.ts'

const find = (words: string[], branch: Branch = commands): boolean => {
  const [first = '', ...rest] = words
  const entry = Object.hasOwn(branch, first) ? branch[first] : undefined
  if (entry === undefined) return false
  return 'commands' in entry ? find(rest, entry.commands) : true
}

test('every command synonym suggests an existing command', () => {
  for (const [theirs, ours] of Object.entries(commandSynonyms)) {
    expect(find(theirs.split(' ')), theirs).toBe(false)
    expect(find(ours.split(' ')), ours).toBe(true)
  }
})

test.each([
  ['files cat', 'files view'],
  ['files less', 'files view PATH | less'],
  ['sessions', 'session ls'],
  ['shell', 'exec -it -- sh'],
  ['usage', 'whoami --usage'],
  ['versoin', 'version'],
  ['files pull', 'files get'],
])('the unknown command %s suggests %s', async (typed, meant) => {
  using home = new Home()
  const words = typed.split(' ')
  const suggestion = `unknown command '${words.at(-1)}'\n(Did you mean ${meant}?)`
  const ran = await home.run([...words, '--json'])
  expect(ran.code).toBe(2)
  expect(ran.stderr).toContain(`sandlot: ${suggestion}\n`)
  expect(ran.json().error.message).toBe(suggestion)
})

test.each([
  [
    ['session', 'create', 'web'],
    `Unexpected argument web.
Use \`sandlot session create --name web\` to name the session, or \`sandlot session create --rm -- web\` to run this command in a new session.`,
  ],
  [
    ['session', 'create', 'make', 'test'],
    `Unexpected arguments make test.
Use \`sandlot session create --rm -- make test\` to run this command in a new session.`,
  ],
  [
    ['forward', 'web', '8000'],
    `"web" is not PORT or LOCAL:PORT, with ports from 1 to 65535.
\`sandlot forward --session web 8000\` forwards to a port of session web.`,
  ],
  [
    ['secrets', 'create', 'A=hunter2'],
    `NAME=VALUE is not accepted, because other users could see the value.
\`sandlot secrets create A\` prompts for the value, or reads it from a pipe or from --from-file.`,
  ],
  [
    ['mcp', 'init', 'claude'],
    `Unknown target "claude". Use one of ${Object.keys(targets).join(', ')}.
See \`sandlot mcp init --help\`.`,
  ],
  [['session', 'create', '--bogus'], "unknown option '--bogus'\nSee `sandlot session create --help`."],
  [['--bogus'], "unknown option '--bogus'\nSee `sandlot --help`."],
])('the client rejects the arguments %j and suggests a correction', async (args, words) => {
  using home = new Home()
  const env = settingsFor('http://127.0.0.1:1')
  expect(await home.run(args, { env })).toMatchObject({ code: 2, stdout: '', stderr: `sandlot: ${words}\n` })
})

test("`help` lists global options after the command's own options", async () => {
  using home = new Home()
  const end = /\n\nOptions of every command, described in sandlot --help: --json [^.]+--api-key\n/
  const group = await home.run(['files', '--help'])
  expect(group.stdout.search(end)).toBeGreaterThan(group.stdout.indexOf('\n  put '))
  const leaf = await home.run(['files', 'put', '--help'])
  expect(leaf.stdout.search(end)).toBeGreaterThan(leaf.stdout.indexOf('--no-overwrite'))
  const { stdout } = await home.run(['--help'])
  expect(stdout.indexOf('\n  --json ')).toBeGreaterThan(stdout.indexOf('\n  doctor '))
})

const refusals: [string[], string, string, RegExp][] = [
  [
    ['files', 'create', 'a.txt', '--content', 'x'],
    'file_exists',
    'The file already exists. Send overwrite: true to replace it.',
    /^sandlot: a\.txt: The file already exists\.\n--overwrite replaces it\.\n/,
  ],
  [
    ['files', 'put', '/dev/null', 'a.txt', '--no-overwrite'],
    'file_exists',
    'The file already exists. Send overwrite: true to replace it.',
    /^sandlot: a\.txt: The file already exists\.\nTo replace the file, omit --no-overwrite\.\n/,
  ],
  [
    ['files', 'edit', 'a.txt', '--old', 'x', '--new', 'y'],
    'edit_not_unique',
    'The text to replace occurs 2 times, on lines 1, 2. Include more context, or set replace_all.',
    /^sandlot: a\.txt: The text .* on lines 1, 2\. Include more of the surrounding text, or use --all\.\n/,
  ],
  [
    ['files', 'edit', 'a.txt', '--old', 'x', '--new', 'y', '--if-match', 'a'.repeat(64)],
    'precondition_failed',
    'The file does not match if_match; nothing was written. Read the file again.',
    /^sandlot: a\.txt: The file does not match --if-match; nothing was written\. Read the file again\.\n/,
  ],
  [
    ['files', 'ls', 'nowhere'],
    'file_not_found',
    'No file exists at this path.',
    /^sandlot: nowhere: No file exists at this path\.\n/,
  ],
]

test.each(refusals)(
  'the client explains the API error for %j in terms of command-line options',
  async (args, code, detail, words) => {
    using home = new Home()
    const problem = { type: 'about:blank', title: code, status: 409, code, detail, request_id: 'req_1' }
    await using peer = await startPeer((_, response) => response.writeHead(409).end(JSON.stringify(problem)))
    expect((await home.run(args, { env: settingsFor(peer.url) })).stderr).toMatch(words)
  },
)

test('`files create` can send a file that exceeds the size limit for JSON bodies', async () => {
  using home = new Home()
  const large = join(home.folder, 'large')
  writeFileSync(large, '')
  truncateSync(large, limits.bodyBytes + 1)
  await using peer = await startPeer((_, response) => {
    response.end(JSON.stringify({ path: '/workspace/a', size: limits.bodyBytes + 1 }))
  })
  const args = ['files', 'create', 'a', '--from-file', large]
  expect((await home.run(args, { env: settingsFor(peer.url) })).code).toBe(0)
  const [{ line, body }] = peer.asked as [(typeof peer.asked)[number]]
  expect(line).toBe('PUT /v1/sandboxes/sbx_a/files/raw?path=a&overwrite=false')
  expect(body).toHaveLength(limits.bodyBytes + 1)
})

test('on a dumb terminal, the client shows help instead of the picker', async () => {
  using home = new Home()
  const terminal = home.open([], { TERM: 'dumb' })
  await terminal.shows('The picker is not available because TERM is dumb')
  await terminal.shows('Usage: sandlot')
  await terminal.ended
})

test('an incomplete search without a match does not count as a search that found nothing', async () => {
  using home = new Home()
  const found = { matches: [], skipped_binary: [], truncated: true }
  await using peer = await startPeer((_, response) => response.end(JSON.stringify(found)))
  expect(await home.run(['files', 'grep', 'x'], { env: settingsFor(peer.url) })).toMatchObject({ code: 9 })
})

test('`session create --rm` does not mention a session that was never requested', async () => {
  using home = new Home()
  const ran = await home.run(['session', 'create', '--rm', '--', 'true'], {
    env: { SANDLOT_URL: 'http://127.0.0.1:1' },
  })
  expect(ran.code).toBe(125)
  expect(ran.stderr).toMatch(/^sandlot: No API key is set/)
  expect(ran.stderr).not.toContain('may have been created')
})

test.each([
  ['is short', 'x'],
  ['is long', 'x'.repeat(100_000)],
])('`exec --json` has the same limits if stdin %s', async (_, input) => {
  using home = new Home()
  await using peer = await startPeer((_, response) => response.writeHead(500).end())
  await home.run(['exec', '--json', 'cat'], { env: settingsFor(peer.url), input })
  expect(JSON.parse(peer.asked[0]!.body)).toMatchObject({
    timeout_ms: limits.execTimeoutMs,
    grace_ms: limits.graceMs.default,
  })
})

test('an option that cannot be sent in a header is a usage error', async () => {
  using home = new Home()
  const ran = await home.run(['session', 'create', '--idempotency-key', 'schlüssel', '--json'], {
    env: settingsFor('http://127.0.0.1:1'),
  })
  expect(ran.json().error).toMatchObject({
    code: 'usage',
    message: '"schlüssel" is not printable ASCII, so it cannot be sent as idempotency-key.',
  })
  expect(ran.code).toBe(2)
})
