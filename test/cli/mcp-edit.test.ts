import fc from 'fast-check'
import { type ParseError, parse } from 'jsonc-parser'
import { parse as parseToml } from 'smol-toml'
import { describe, expect, test } from 'vitest'
import { editEntry, readEntry } from '../../cli/mcp/edit-json.ts'
import { editEntry as editTomlEntry, readEntry as readTomlEntry } from '../../cli/mcp/edit-toml.ts'

const place = { section: 'mcpServers', name: 'sandlot' }
const entry = { type: 'stdio', command: '/node', args: ['/sandlot', 'mcp', 'serve'] }
const own = ['type', 'command', 'args', 'url', 'headers']
const put = (text: string) => editEntry(text, place, entry, own)
const take = (text: string) => editEntry(text, place, undefined, own)

const read = (text: string) => {
  const errors: ParseError[] = []
  const value = parse(text, errors, { allowTrailingComma: true, allowEmptyContent: true })
  expect(errors, text).toEqual([])
  return value
}

describe('JSON files', () => {
  test("editing an MCP client's JSON file keeps its indentation, and a new file ends with a newline", () => {
    expect(put('')).toBe(`${JSON.stringify({ mcpServers: { sandlot: entry } }, null, 2)}\n`)
    const tabs = '{\n\t"mcpServers": {\n\t\t"x": {} // last\n\t}\n}'
    expect(put(tabs)).toContain('\n\t\t"sandlot": {\n\t\t\t"type": "stdio",\n')
  })

  test("editing an MCP client's JSON file keeps its Windows line endings", () => {
    const before = '{\r\n  "mcpServers": {\r\n    "x": {}\r\n  }\r\n}\r\n'
    expect(put(before).replaceAll('\r\n', '')).not.toContain('\n')
    expect(take(put(before))).toBe(before)
  })

  test("editing the `sandlot` entry of a JSON file keeps the user's own fields and comments", () => {
    const after = put(`{"mcpServers": {"sandlot": {
      // for the staging service
      "env": {"SANDLOT_URL": "https://staging.example"},
      "url": "https://old.example/v1/mcp", // old
      "command": "/old/node", "args": ["/sandlot", "mcp", "serve"]
    }}}`)
    expect(after).toContain('// for the staging service\n      "env"')
    expect(after).toContain('// old')
    expect(readEntry(after, place)).toEqual({ ...entry, env: { SANDLOT_URL: 'https://staging.example' } })
  })

  test.each([
    ['that is truncated', '{"mcpServers": {"x": {'],
    ['with a stray brace', '{}}'],
    ['that is TOML', 'servers = 1'],
    ['that is a list', '[]'],
    ['whose section is a list', '{"mcpServers": []}'],
    ['whose section is null', '{"mcpServers": null}'],
    ['with a duplicate section', '{"mcpServers": {}, "mcpServers": {}}'],
    ['with a duplicate server', '{"mcpServers": {"sandlot": {}, "sandlot": {}}}'],
  ])("rejects an MCP client's JSON file %s", (_, text) => {
    expect(() => put(text)).toThrow()
    expect(() => take(text)).toThrow()
  })

  // JSON as people write it, with comments, spaces and trailing commas.
  const space = fc.constantFrom('', ' ', '\n', '\t', '\n  ', ' // a "comment" {,}\n', ' /* , } */ ')
  const scalar = fc
    .oneof(fc.integer(), fc.boolean(), fc.constant(null), fc.string())
    .map((v) => JSON.stringify(v))
  const key = fc
    .string({ maxLength: 5 })
    .filter((text) => !['mcpServers', 'sandlot', '__proto__'].includes(text))
  const objectOf = (values: fc.Arbitrary<string>) =>
    fc
      .tuple(
        fc.uniqueArray(fc.tuple(key, values, space, space, space), { maxLength: 3, selector: ([k]) => k }),
        fc.boolean(),
        space,
      )
      .map(([members, comma, end]) => {
        const texts = members.map(([k, v, a, b, c]) => `${a}${JSON.stringify(k)}:${b}${v}${c}`)
        return `{${texts.join(',')}${comma && texts.length > 0 ? ',' : ''}${end}}`
      })
  const inner = objectOf(fc.oneof(scalar, objectOf(scalar)))
  const document = fc
    .tuple(space, inner, inner, fc.boolean(), space, space)
    .map(([before, root, servers, has, gap, after]) => {
      const separator =
        root.length > 2 && /["\d}\]el]/.test(root.replace(/\/\/.*|\/\*.*?\*\/|\s/g, '').at(1)!) ? ',' : ''
      const member = has ? `${gap}"mcpServers":${servers}${separator}` : ''
      return `${before}{${member}${root.slice(1)}${after}`
    })

  test('editing a JSON file keeps comments and everything outside the `sandlot` entry', () => {
    const commentsOf = (text: string) => text.match(/\/\/ a "comment" \{,\}|\/\* , \} \*\//g)?.sort()
    fc.assert(
      fc.property(document, (text) => {
        const [old, after] = [read(text), put(text)]
        const { mcpServers, ...rest } = read(after)
        const { sandlot, ...others } = mcpServers
        expect(sandlot).toEqual(entry)
        expect(rest).toEqual({ ...old, mcpServers: undefined })
        expect(others).toEqual(old.mcpServers ?? {})
        expect(put(after)).toBe(after)
        const gone = take(after)
        expect(read(gone)).toEqual({ ...old, mcpServers: old.mcpServers ?? {} })
        for (const each of [after, gone]) expect(commentsOf(each)).toEqual(commentsOf(text))
      }),
      { numRuns: 500 },
    )
  })
})

function isToml(text: string): boolean {
  try {
    return parseToml(text) !== undefined
  } catch {
    return false
  }
}

describe('TOML files', () => {
  const codex = { section: 'mcp_servers', name: 'sandlot' }
  const server = { command: '/node', args: ['/sandlot', 'mcp', 'serve'] }
  const mine = ['command', 'args', 'url', 'bearer_token_env_var']
  const putToml = (text: string) => editTomlEntry(text, codex, server, mine)
  const takeToml = (text: string) => editTomlEntry(text, codex, undefined, mine)
  const table = '[mcp_servers.sandlot]\ncommand = "/node"\nargs = [ "/sandlot", "mcp", "serve" ]\n'

  test.each([
    ['nothing', '', table],
    ['settings', '# mine\nmodel = "o5" # fast\n', `# mine\nmodel = "o5" # fast\n\n${table}`],
    [
      'other servers and no final newline',
      '[mcp_servers.x] # keep\ncommand  =  "y"',
      `[mcp_servers.x] # keep\ncommand  =  "y"\n\n${table}`,
    ],
  ])('adding the `sandlot` server to a TOML file that contains %s appends a table', (_, before, after) => {
    expect(putToml(before)).toBe(after)
    expect(putToml(after)).toBe(after)
  })

  test("editing an MCP client's TOML file keeps its Windows line endings", () => {
    const after = putToml('a = 1\r\n')
    expect(after.replaceAll('\r\n', '')).not.toContain('\n')
    expect(parseToml(after)).toMatchObject({ a: 1, mcp_servers: { sandlot: server } })
  })

  test("changing or removing the `sandlot` entry of a TOML file keeps comments and the user's fields", () => {
    const before = `# mine
model = "o5"  # fast
when = 2026-11-21T10:00:00Z

[mcp_servers.sandlot] # ours
command = "/old"
startup_timeout_sec = 20 # slow machine

[mcp_servers.sandlot.env]
SANDLOT_URL = "https://staging.example"

# the other one
[mcp_servers.other]
command   =   "x"
`
    const after = putToml(before)
    for (const kept of [
      '# mine\nmodel = "o5"  # fast\nwhen',
      '[mcp_servers.sandlot] # ours',
      '= 20 # slow machine',
    ]) {
      expect(after).toContain(kept)
    }
    expect(after).toContain('\n# the other one\n[mcp_servers.other]\ncommand   =   "x"\n')
    expect(readTomlEntry(after, codex)).toEqual({
      ...server,
      startup_timeout_sec: 20,
      env: { SANDLOT_URL: 'https://staging.example' },
    })
    const gone = takeToml(after)
    expect(readTomlEntry(gone, codex)).toBeUndefined()
    expect(gone).toContain('# mine\nmodel = "o5"  # fast\nwhen')
    expect(gone).toContain('# the other one\n[mcp_servers.other]\ncommand   =   "x"\n')
  })

  test.each([
    ['a header with spaces', '[ mcp_servers . "sandlot" ] # ours\nargs = []\n'],
    ['a separate section', 'a = 1\n\n[mcp_servers] # all\n\n[mcp_servers.sandlot]\n\n# b\n[b]\n'],
    ['keys with dots', 'mcp_servers.sandlot.command = "x"\n# b\nb = 1\n'],
    ['braces', 'mcp_servers = { sandlot = {}, x = {} }   # s\n'],
    ['an inline table after others', 'mcp_servers = { x = {}, sandlot = {} }\n'],
    ['only another inline table', 'mcp_servers = { x = { command = "y" } } # short\n'],
    ['only an inline table', 'a = 1\nmcp_servers = { sandlot = {} }\nb = 2\n'],
    ['its name inside a string', 't = """\n[mcp_servers.sandlot]\n"""\n[mcp_servers.sandlot]\n'],
    ['no final newline', '[mcp_servers.x]\n[mcp_servers.sandlot]\ncommand = "y"'],
  ])('changing or removing `sandlot` does not affect the rest of a TOML file with %s', (_, before) => {
    const { mcp_servers, ...rest } = parseToml(before)
    const { sandlot: _sandlot, ...others } = mcp_servers as Record<string, unknown>
    const [changed, gone] = [putToml(before), takeToml(before)]
    expect(parseToml(changed)).toEqual({ ...rest, mcp_servers: { ...others, sandlot: server } })
    expect({ mcp_servers: {}, ...parseToml(gone) }).toEqual({ ...rest, mcp_servers: others })
    const commentsOf = (text: string) => (text.match(/#.*/g) ?? []).filter((each) => each !== '# ours')
    expect(commentsOf(changed)).toEqual(commentsOf(before))
    expect(commentsOf(gone)).toEqual(commentsOf(before))
  })

  test('changing or removing the `sandlot` server in a TOML file leaves all other lines unchanged', () => {
    const line = (...texts: string[]) => fc.constantFrom(...texts)
    const gap = line('', '\n', '# a comment\n', '\n# one\n\n', '  \n')
    const others = fc.array(
      line(
        '[b] # [mcp_servers.sandlot]\nc = "#"\n',
        '[[d]]\n  e = [\n    1, # in\n  ]\n',
        '[mcp_servers.x]\ncommand  =  "y"\n',
        "[mcp_servers.x.env]\n\"sandlot\" = '''\n[a]'''\n",
      ),
      { maxLength: 3 },
    )
    const ours = fc.tuple(
      line('[mcp_servers.sandlot]', '[ mcp_servers.\t"sandlot" ]  # ours'),
      line('', 'command = "/node"', 'args = [\n  "x",\n]', '  url = "https://a.example" # old'),
      line('', 'timeout = 3 # slow', '\n[mcp_servers.sandlot.env]\n# of the server\nA = "b"'),
    )
    const once = (texts: string[]) => new Set(texts.map((text) => text.slice(0, 18))).size === texts.length
    const gaps = fc.tuple(gap, gap, gap, gap)
    const document = fc
      .tuple(others.filter(once), ours, gaps, fc.nat(3), line('\n', '\r\n'))
      .map(([around, own, spaces, at, eol]) => {
        const texts = around.map((text, index) => spaces[index]! + text)
        const server =
          spaces[3] +
          own
            .filter((text) => text !== '')
            .map((text) => `${text}\n`)
            .join('')
        const make = (...parts: string[]) => ['a = 1\n', ...parts].join('').replaceAll('\n', eol)
        // Comments above a removed server are kept.
        const without = make(...texts.toSpliced(at, 0, spaces[3]!))
        return { before: make(...texts.toSpliced(at, 0, server)), without }
      })
      // TOML allows x.env before x, but does not allow x twice.
      .filter(({ before }) => isToml(before))
    const linesOf = (text: string) => text.split('\n').filter((each) => each.trim() !== '')
    fc.assert(
      fc.property(document, ({ before, without }) => {
        expect(linesOf(takeToml(before))).toEqual(linesOf(without))
        const after = putToml(before)
        expect(readTomlEntry(after, codex)).toMatchObject(server)
        expect(readTomlEntry(after, codex)).not.toHaveProperty('url')
        for (const kept of linesOf(without)) expect(linesOf(after)).toContain(kept)
        for (const kept of linesOf(without)) expect(linesOf(takeToml(after))).toContain(kept)
        expect(putToml(after)).toBe(after)
      }),
      { numRuns: 300 },
    )
  })

  test('editing the `sandlot` entry of a TOML file keeps the comments inside its lists', () => {
    const after = putToml('[mcp_servers.sandlot]\nargs = [\n  "x", # in\n]\n[b] # of b\nc = 1 # of c\n')
    expect(parseToml(after)).toEqual({ mcp_servers: { sandlot: server }, b: { c: 1 } })
    expect(after.match(/#.*/g)).toEqual(['# in', '# of b', '# of c'])
  })

  test.each(['a = ', '[mcp_servers', 'mcp_servers = 1', 'a = 1\na = 2', '{}'])(
    "rejects an MCP client's TOML file that contains %j",
    (text) => {
      expect(() => putToml(text)).toThrow()
    },
  )
})
