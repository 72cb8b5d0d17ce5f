/** Editing other programs' settings files: the texts alone. */
import fc from 'fast-check'
import { type ParseError, parse } from 'jsonc-parser'
import { parse as parseToml } from 'smol-toml'
import { describe, expect, test } from 'vitest'
import { editJson, readJsonEntry } from '../../cli/mcp/edit-json.ts'
import { editToml, readTomlEntry } from '../../cli/mcp/edit-toml.ts'

const place = { section: 'mcpServers', name: 'sandlot' }
const entry = { type: 'stdio', command: '/node', args: ['/sandlot', 'mcp', 'serve'] }
const own = ['type', 'command', 'args', 'url', 'headers']
const put = (text: string) => editJson(text, place, entry, own)
const take = (text: string) => editJson(text, place, undefined, own)

const read = (text: string) => {
  const errors: ParseError[] = []
  const value = parse(text.replace(/^\ufeff/, ''), errors, {
    allowTrailingComma: true,
    allowEmptyContent: true,
  })
  expect(errors, text).toEqual([])
  return value
}

describe('a JSON file', () => {
  test.each([
    ['nothing', '', '{\n  "mcpServers": {\n    "sandlot": {"ENTRY": 4}\n  }\n}\n'],
    ['an empty object', '{}', '{\n  "mcpServers": {\n    "sandlot": {"ENTRY": 4}\n  }\n}'],
    [
      'an empty section with a comment',
      '{\n  "mcpServers": {\n    // none yet\n  }\n}\n',
      '{\n  "mcpServers": {\n    // none yet\n    "sandlot": {"ENTRY": 4}\n  }\n}\n',
    ],
    [
      'tabs, and a comment behind the last server',
      '{\n\t"mcpServers": {\n\t\t"x": {"command":"y"} // last\n\t}\n}',
      '{\n\t"mcpServers": {\n\t\t"x": {"command":"y"}, // last\n\t\t"sandlot": {"ENTRY": "\t\t"}\n\t}\n}',
    ],
    [
      'trailing commas',
      '{\n  "mcpServers": {\n    "x": { "command": "y" }, // last\n  },\n  "z": [1, 2,],\n}\n',
      '{\n  "mcpServers": {\n    "x": { "command": "y" }, // last\n    "sandlot": {"ENTRY": 4},\n  },\n  "z": [1, 2,],\n}\n',
    ],
    [
      'other settings alone',
      '// mine\n{\n    "a": 1 /* one */\n}\n',
      '// mine\n{\n    "a": 1, /* one */\n    "mcpServers": {\n        "sandlot": {"ENTRY": 8}\n    }\n}\n',
    ],
    ['one line', '{"a": 1}', '{"a": 1,\n  "mcpServers": {\n    "sandlot": {"ENTRY": 4}\n  }\n}'],
  ])('with %s gets the server, and keeps every other byte', (_, before, golden) => {
    const after = put(before)
    // The entry is printed as deep as it stands there; the golden text says where.
    const expected = golden.replace(/\{"ENTRY": ("\\?t*.*"|\d)\}/, (_, depth: string) => {
      const unit = golden.includes('\t') ? '\t' : golden.includes('\n        "sandlot"') ? '    ' : '  '
      const indent = depth.startsWith('"') ? '\t\t' : ' '.repeat(Number(depth))
      return JSON.stringify(entry, null, unit).replaceAll('\n', `\n${indent}`)
    })
    expect(after).toBe(expected)
    expect(put(after)).toBe(after)
  })

  test('keeps its BOM and its Windows line ends', () => {
    const before = '\ufeff{\r\n  "mcpServers": {\r\n    "x": {}\r\n  }\r\n}\r\n'
    const after = put(before)
    expect(after.startsWith('\ufeff{\r\n')).toBe(true)
    expect(after.replaceAll('\r\n', '')).not.toContain('\n')
    expect(take(after)).toBe(before)
  })

  test('keeps what the user added to the entry, comments included, and drops what was of another kind', () => {
    const before = `{"mcpServers": {"sandlot": {
      // for the staging service
      "env": {"SANDLOT_URL": "https://staging.example"},
      "url": "https://old.example/v1/mcp", // old
      "command": "/old/node", "args": ["/sandlot", "mcp", "serve"]
    }}}`
    const after = put(before)
    expect(after).toContain(
      '// for the staging service\n      "env": {"SANDLOT_URL": "https://staging.example"},',
    )
    expect(after).toContain('"args": ["/sandlot", "mcp", "serve"]')
    expect(readJsonEntry(after, place)).toEqual({ ...entry, env: { SANDLOT_URL: 'https://staging.example' } })
  })

  test.each([
    ['cut short', '{"mcpServers": {"x": {'],
    ['with a stray brace', '{}}'],
    ['of another language', 'servers = 1'],
    ['that is a list', '[]'],
    ['whose section is a list', '{"mcpServers": []}'],
    ['whose section is null', '{"mcpServers": null}'],
    ['whose section is there twice', '{"mcpServers": {}, "mcpServers": {}}'],
    ['whose server is there twice', '{"mcpServers": {"sandlot": {}, "sandlot": {}}}'],
  ])('%s is refused', (_, text) => {
    expect(() => put(text)).toThrow()
    expect(() => take(text)).toThrow()
  })

  // Any object as people write it: with comments, white space and commas of all sorts.
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
      return { text: `${before}{${member}${root.slice(1)}${after}`, has }
    })

  test('whatever it looks like, everything outside the entry stays as it was', () => {
    fc.assert(
      fc.property(document, ({ text }) => {
        const [old, after] = [read(text), put(text)]
        const { mcpServers, ...rest } = read(after)
        const { sandlot, ...others } = mcpServers
        expect(sandlot).toEqual(entry)
        expect(rest).toEqual({ ...old, mcpServers: undefined })
        expect(others).toEqual(old.mcpServers ?? {})
        // Only inserted: what was there is still there, byte after byte, in its order.
        let at = -1
        for (const character of text) {
          at = after.indexOf(character, at + 1)
          if (at < 0) throw new Error(`${JSON.stringify(character)} is gone from ${after}`)
        }
        expect(put(after)).toBe(after)
        // A section with nothing in it goes too.
        expect({ mcpServers: {}, ...read(take(after)) }).toEqual({ ...old, mcpServers: old.mcpServers ?? {} })
      }),
      { numRuns: 500 },
    )
  })

  test('keeps the comments beside a removed entry, each on its line', () => {
    const before = '{"mcpServers": { // ours\n  "sandlot": {}, // old\n  "x": {}}}'
    expect(take(before)).toBe('{"mcpServers": { // ours\n   // old\n  "x": {}}}')
    expect(take('{"mcpServers": { // ours\n"sandlot": {}}}')).toBe('{"mcpServers": { // ours\n}}')
  })

  test('that has other servers gets back its former bytes when ours is removed', () => {
    for (const before of [
      '{\n  "mcpServers": {\n    "x": {} // x\n  }\n}\n',
      '{\n\t"mcpServers": {\n\t\t"x": {}, // x\n\t\t/* y */\n\t},\n}',
      '{\r\n  "a": 1,\r\n  "mcpServers": {\r\n    "x": {},\r\n    "y": {}\r\n  }\r\n}',
      '{\n  "a": 1, // one\n  "b": 2\n}\n',
      '{\n  "mcpServers": {\n    // none yet\n  }\n}\n',
    ]) {
      expect(take(put(before))).toBe(before)
    }
  })
})

function isToml(text: string): boolean {
  try {
    return parseToml(text.replace(/^\ufeff/, '')) !== undefined
  } catch {
    return false
  }
}

describe('a TOML file', () => {
  const codex = { section: 'mcp_servers', name: 'sandlot' }
  const server = { command: '/node', args: ['/sandlot', 'mcp', 'serve'] }
  const mine = ['command', 'args', 'url', 'bearer_token_env_var']
  const putToml = (text: string) => editToml(text, codex, server, mine)
  const takeToml = (text: string) => editToml(text, codex, undefined, mine)
  const table = '[mcp_servers.sandlot]\ncommand = "/node"\nargs = [ "/sandlot", "mcp", "serve" ]\n'

  test.each([
    ['nothing', '', table],
    ['settings', '# mine\nmodel = "o5" # fast\n', `# mine\nmodel = "o5" # fast\n\n${table}`],
    [
      'other servers and no last line end',
      '[mcp_servers.x] # keep\ncommand  =  "y"',
      `[mcp_servers.x] # keep\ncommand  =  "y"\n\n${table}`,
    ],
    ['a BOM', '\ufeffa = 1\n', `\ufeffa = 1\n\n${table}`],
  ])('with %s gets the server as a table at its end', async (_, before, after) => {
    expect(await putToml(before)).toBe(after)
    expect(await putToml(after)).toBe(after)
  })

  test('keeps its Windows line ends', async () => {
    const after = await putToml('a = 1\r\n')
    expect(after.replaceAll('\r\n', '')).not.toContain('\n')
    expect(parseToml(after)).toMatchObject({ a: 1, mcp_servers: { sandlot: server } })
  })

  test('keeps comments, order and what the user added when the entry changes, and when it goes', async () => {
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
    const after = await putToml(before)
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
    const gone = await takeToml(after)
    expect(readTomlEntry(gone, codex)).toBeUndefined()
    expect(gone).toContain('# mine\nmodel = "o5"  # fast\nwhen')
    expect(gone).toContain('# the other one\n[mcp_servers.other]\ncommand   =   "x"\n')
  })

  test.each([
    ['a header with spaces', '[ mcp_servers . "sandlot" ] # ours\nargs = []\n', ''],
    ['a section of its own', 'a = 1\n\n[mcp_servers]\n\n[mcp_servers.sandlot]\n', 'a = 1\n'],
    [
      'a section with a comment',
      '[mcp_servers] # all\n\n[mcp_servers.sandlot]\n\n[b]\n',
      '[mcp_servers] # all\n\n[b]\n',
    ],
    ['keys with dots', 'mcp_servers.sandlot.command = "x"\n# b\nb = 1\n', '# b\nb = 1\n'],
    ['braces', 'mcp_servers = { sandlot = {}, x = {} }   # s\n', 'mcp_servers = { x = {} }   # s\n'],
    ['braces behind others', 'mcp_servers = { x = {}, sandlot = {} }\n', 'mcp_servers = { x = {} }\n'],
    ['braces alone', 'a = 1\nmcp_servers = { sandlot = {} }\nb = 2\n', 'a = 1\nb = 2\n'],
    ['its name in a text', 't = """\n[mcp_servers.sandlot]\n"""\n[mcp_servers.sandlot]\n', null],
    ['Windows line ends', 'a = 1\r\n\r\n[mcp_servers.sandlot]\r\n\r\n[b]\r\n', 'a = 1\r\n\r\n[b]\r\n'],
    ['no line end', '[mcp_servers.x]\n[mcp_servers.sandlot]\ncommand = "y"', '[mcp_servers.x]\n'],
  ])('a server with %s is changed and taken out, and nothing else is', async (_, before, after) => {
    expect(await takeToml(before)).toBe(after ?? 't = """\n[mcp_servers.sandlot]\n"""\n')
    const changed = await putToml(before)
    expect(parseToml(changed)).toMatchObject({ mcp_servers: { sandlot: server } })
    const heads = (text: string) => text.match(/^\[.*|#.*/gm)
    expect(heads(changed)).toEqual(heads(before))
  })

  test('whatever stands around a server keeps its lines, whether that is changed or taken out', async () => {
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
      line('', 'command = "/node"', 'args = [\n  "x", # in\n]', '  url = "https://a.example" # old'),
      line('', 'timeout = 3 # slow', '\n# of the servers\n[mcp_servers.sandlot.env]\nA = "b"'),
    )
    const once = (texts: string[]) => new Set(texts.map((text) => text.slice(0, 18))).size === texts.length
    const gaps = fc.tuple(gap, gap, gap, gap)
    const document = fc
      .tuple(others.filter(once), ours, gaps, fc.nat(3), line('\n', '\r\n'), line('', '\ufeff'))
      .map(([around, own, spaces, at, eol, bom]) => {
        const texts = around.map((text, index) => spaces[index]! + text)
        const server =
          spaces[3] +
          own
            .filter((text) => text !== '')
            .map((text) => `${text}\n`)
            .join('')
        const make = (...parts: string[]) => bom + ['a = 1\n', ...parts].join('').replaceAll('\n', eol)
        // Comments above the server stay when it goes.
        const without = make(...texts.toSpliced(at, 0, spaces[3]!))
        return { before: make(...texts.toSpliced(at, 0, server)), without }
      })
      // x.env before x is fine, x twice is not.
      .filter(({ before }) => isToml(before))
    const linesOf = (text: string) => text.split('\n').filter((each) => each.trim() !== '')
    await fc.assert(
      fc.asyncProperty(document, async ({ before, without }) => {
        expect(linesOf(await takeToml(before))).toEqual(linesOf(without))
        const after = await putToml(before)
        expect(readTomlEntry(after, codex)).toMatchObject(server)
        expect(readTomlEntry(after, codex)).not.toHaveProperty('url')
        for (const kept of linesOf(without)) expect(linesOf(after)).toContain(kept)
        expect(linesOf(await takeToml(after))).toEqual(linesOf(without))
        expect(await putToml(after)).toBe(after)
      }),
      { numRuns: 300 },
    )
  })

  test('whose servers stand in one line gets ours all the same', async () => {
    const after = await putToml('mcp_servers = { x = { command = "y" } } # short\n')
    expect(parseToml(after)).toEqual({ mcp_servers: { x: { command: 'y' }, sandlot: server } })
    expect(after).toContain('# short')
  })

  test.each(['a = ', '[mcp_servers', 'mcp_servers = 1', 'a = 1\na = 2', '{}'])(
    '%j is refused',
    async (text) => {
      await expect(putToml(text)).rejects.toThrow()
    },
  )
})
