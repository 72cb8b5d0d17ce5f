/** `sandlot mcp init` on typical settings files of homes and projects. */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { parse } from 'jsonc-parser'
import { describe, expect, test } from 'vitest'
import { clientPath, Home, type Ran } from './client.ts'

/** A home and a project folder, where commands run. */
class Place extends Home {
  readonly project = join(this.folder, 'project')

  constructor() {
    super()
    mkdirSync(this.project)
    this.writeConfig('base_url = "https://sandlot.example"\napi_key = "sandlot_live_secret"\n')
  }

  init(...args: string[]): Promise<Ran> {
    return this.run(['mcp', 'init', ...args], { cwd: this.project })
  }

  write(path: string, text: string): string {
    const file = join(this.folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    return file
  }
}

const started = { command: process.execPath, args: [clientPath, 'mcp', 'serve'] }
const bearer = (reference: string) => ({ Authorization: `Bearer ${reference}` })
const url = 'https://sandlot.example/v1/mcp'

interface Shape {
  target: string
  section: string
  user: string
  project?: string
  entry: object
  http?: object
}

/** Based on the documentation of each program. Here, XDG_CONFIG_HOME is `config`. */
const shapes: Shape[] = [
  {
    target: 'claude-code',
    section: 'mcpServers',
    user: '.claude.json',
    project: '.mcp.json',
    entry: { type: 'stdio', ...started },
    http: { type: 'http', url, headers: bearer(`\${SANDLOT_API_KEY}`) },
  },
  {
    target: 'claude-desktop',
    section: 'mcpServers',
    user: 'config/Claude/claude_desktop_config.json',
    entry: started,
  },
  {
    target: 'cursor',
    section: 'mcpServers',
    user: '.cursor/mcp.json',
    project: '.cursor/mcp.json',
    entry: started,
    http: { url, headers: bearer(`\${env:SANDLOT_API_KEY}`) },
  },
  {
    target: 'vscode',
    section: 'servers',
    user: 'config/Code/User/mcp.json',
    project: '.vscode/mcp.json',
    entry: { type: 'stdio', ...started },
    http: { type: 'http', url, headers: bearer(`\${env:SANDLOT_API_KEY}`) },
  },
  {
    target: 'windsurf',
    section: 'mcpServers',
    user: '.codeium/windsurf/mcp_config.json',
    entry: started,
    http: { serverUrl: url, headers: bearer(`\${env:SANDLOT_API_KEY}`) },
  },
  {
    target: 'gemini',
    section: 'mcpServers',
    user: '.gemini/settings.json',
    project: '.gemini/settings.json',
    entry: started,
    http: { httpUrl: url, headers: bearer('$SANDLOT_API_KEY') },
  },
  {
    target: 'zed',
    section: 'context_servers',
    user: 'config/zed/settings.json',
    project: '.zed/settings.json',
    entry: started,
  },
  {
    target: 'opencode',
    section: 'mcp',
    user: 'config/opencode/opencode.json',
    project: 'opencode.json',
    entry: { type: 'local', command: [started.command, ...started.args], enabled: true },
    http: { type: 'remote', url, headers: bearer('{env:SANDLOT_API_KEY}'), enabled: true },
  },
]

/** Changes on every write, even if the text stays the same. */
const traceOf = (file: string) => {
  const { ino, mtimeMs, mode } = statSync(file)
  return { ino, mtimeMs, mode, text: readFileSync(file, 'utf8') }
}

describe.each(shapes)('$target', ({ target, section, user, project, entry, http }) => {
  test('`mcp init` creates a settings file that only its owner can read', async () => {
    using home = new Place()
    const file = join(home.folder, user)
    const stdout = `sandlot written to ${file}\n`
    expect(await home.init(target)).toMatchObject({ code: 0, stderr: '', stdout })
    expect(readFileSync(file, 'utf8')).toBe(`${JSON.stringify({ [section]: { sandlot: entry } }, null, 2)}\n`)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(existsSync(`${file}.sandlot-backup`)).toBe(false)
  })

  test('`mcp init` keeps comments, tabs and other servers, and saves a backup', async () => {
    using home = new Place()
    const other = { command: 'x', args: [1, 2] }
    const before = `// my servers
{
\t"theme": "dark", // as it should be
\t"${section}": {
\t\t/* the first */
\t\t"other": {"command": "x",   "args": [1,2,],}, // dense
\t},
}
`
    const file = home.write(user, before)
    const shows = (servers: object) => {
      const text = readFileSync(file, 'utf8')
      expect(parse(text)).toEqual({ theme: 'dark', [section]: servers })
      for (const comment of ['// my servers', '// as it should be', '/* the first */', '// dense'])
        expect(text).toContain(comment)
    }
    expect(await home.init(target)).toMatchObject({ code: 0 })
    shows({ other, sandlot: entry })
    expect(readFileSync(file, 'utf8')).toContain('\n\t\t"sandlot": {\n\t\t\t"')
    expect(readFileSync(`${file}.sandlot-backup`, 'utf8')).toBe(before)
    expect(await home.init(target)).toMatchObject({ code: 0, stdout: `${file}: nothing to change\n` })
    expect(await home.init(target, '--remove')).toMatchObject({ code: 0 })
    shows({ other })
  })

  if (project)
    test('`mcp init` creates a world-readable project file without local paths', async () => {
      using home = new Place()
      expect(await home.init(target, '--scope', 'project', '--portable')).toMatchObject({ code: 0 })
      const file = join(home.project, project)
      const text = readFileSync(file, 'utf8')
      expect(text).toContain('"sandlot"')
      expect(text).not.toContain(process.execPath)
      expect(statSync(file).mode & 0o777).toBe(0o644)
    })
  else
    test('`mcp init` rejects --scope project for a client that does not support project files', async () => {
      using home = new Place()
      expect(await home.init(target, '--scope', 'project')).toMatchObject({ code: 2 })
    })

  if (http)
    test('`mcp init --http` writes an entry that reads the key from the environment', async () => {
      using home = new Place()
      await home.init(target)
      expect(await home.init(target, '--http')).toMatchObject({ code: 0 })
      const text = readFileSync(join(home.folder, user), 'utf8')
      expect(JSON.parse(text)[section].sandlot).toEqual(http)
      expect(text).not.toContain('sandlot_live')
      expect(await home.init(target, '--http', '--check')).toMatchObject({ code: 0 })
    })
  else
    test('`mcp init` rejects --http for a client that would have to store the key in its settings file', async () => {
      using home = new Place()
      expect(await home.init(target, '--http')).toMatchObject({ code: 2 })
      expect(existsSync(join(home.folder, user))).toBe(false)
    })
})

describe('codex', () => {
  const args = started.args.map((each) => JSON.stringify(each)).join(', ')
  const table = `[mcp_servers.sandlot]\ncommand = ${JSON.stringify(started.command)}\nargs = [ ${args} ]\n`

  test("`mcp init` for codex appends a table to the user's config.toml", async () => {
    using home = new Place()
    const before = '# mine\nmodel  =  "o5" # fast\n\n[mcp_servers.other]\n  command = "x"\n'
    const file = home.write('.codex/config.toml', before)
    expect(await home.init('codex')).toMatchObject({ code: 0 })
    expect(readFileSync(file, 'utf8')).toBe(`${before}\n${table}`)
    expect(await home.init('codex')).toMatchObject({ stdout: `${file}: nothing to change\n` })
    expect(await home.init('codex', '--remove')).toMatchObject({ code: 0 })
    expect(readFileSync(file, 'utf8')).toBe(before)
  })

  test('`mcp init --http` for codex names the environment variable that contains the key', async () => {
    using home = new Place()
    await home.init('codex')
    expect(await home.init('codex', '--http')).toMatchObject({ code: 0 })
    expect(readFileSync(join(home.folder, '.codex/config.toml'), 'utf8')).toBe(
      `[mcp_servers.sandlot]\nurl = "${url}"\nbearer_token_env_var = "SANDLOT_API_KEY"\n`,
    )
  })

  test('`mcp init` for codex writes a project file and leaves a malformed file unchanged', async () => {
    using home = new Place()
    expect(await home.init('codex', '--scope', 'project')).toMatchObject({ code: 0 })
    const file = home.write('project/.codex/config.toml', '[mcp_servers')
    expect(await home.init('codex', '--scope', 'project')).toMatchObject({ code: 2 })
    expect(readFileSync(file, 'utf8')).toBe('[mcp_servers')
  })
})

describe('settings files', () => {
  test("`mcp init` keeps a file's mode, byte order mark and symbolic link", async () => {
    using home = new Place()
    const real = home.write('dotfiles/cursor.json', '\ufeff{}\n')
    chmodSync(real, 0o640)
    mkdirSync(join(home.folder, '.cursor'))
    const link = join(home.folder, '.cursor', 'mcp.json')
    symlinkSync('../dotfiles/cursor.json', link)
    expect(await home.init('cursor')).toMatchObject({ code: 0 })
    expect(lstatSync(link).isSymbolicLink()).toBe(true)
    expect(readFileSync(real, 'utf8').startsWith('\ufeff{\n')).toBe(true)
    expect(statSync(real).mode & 0o777).toBe(0o640)
    expect(statSync(`${real}.sandlot-backup`).mode & 0o777).toBe(0o640)
  })

  test('`mcp init` rejects a malformed file and leaves it unchanged', async () => {
    using home = new Place()
    const file = home.write('.cursor/mcp.json', '{"mcpServers": {"other": {')
    const before = traceOf(file)
    const ran = await home.init('cursor')
    expect(ran).toMatchObject({ code: 2, stdout: '' })
    expect(ran.stderr).toContain(`${file} was not changed: it is not valid JSON`)
    expect(traceOf(file)).toEqual(before)
    expect(existsSync(`${file}.sandlot-backup`)).toBe(false)
  })
})

test('`mcp init --portable` warns if sandlot is not on the PATH', async () => {
  using home = new Place()
  const program = home.write('node_modules/.bin/sandlot', '')
  const folder = dirname(program)
  const init = async (PATH: string) => {
    await home.init('cursor')
    return (await home.run(['mcp', 'init', 'cursor', '--portable'], { env: { PATH } })).stderr
  }
  expect(await init(folder)).toContain('`sandlot`, which is not on your PATH')
  home.write('bin/sandlot', '')
  expect(await init(`${folder}:${join(home.folder, 'bin')}`)).not.toContain('PATH')
})

describe('options that write nothing', () => {
  test('`mcp init --dry-run` shows the changes', async () => {
    using home = new Place()
    const file = home.write('.cursor/mcp.json', '{\n  "a": 1\n}\n')
    const { stdout, code } = await home.init('cursor', '--dry-run')
    expect(code).toBe(0)
    expect(stdout).toContain(`--- ${file}\n+++ ${file}\n@@ -1,3 +1,`)
    expect(stdout).toContain('\n-  "a": 1\n+  "a": 1,\n+  "mcpServers": {\n')
    expect(readFileSync(file, 'utf8')).toBe('{\n  "a": 1\n}\n')
  })

  test('`mcp init --check` exits with code 0 if the entry is up to date, and with code 1 otherwise', async () => {
    using home = new Place()
    const check = async () => {
      const { code, stdout } = await home.init('cursor', '--check')
      return [code, stdout.trimEnd().split(': ').at(-1)]
    }
    expect(await check()).toEqual([1, 'missing'])
    await home.init('cursor', '--portable')
    expect(await check()).toEqual([1, 'different'])
    await home.init('cursor')
    expect(await check()).toEqual([0, 'current'])
  })

  test('`mcp init --print` prints the entry under the requested name', async () => {
    using home = new Place()
    const { stdout } = await home.init('vscode', '--print', '--portable', '--name', 'boxes')
    expect(JSON.parse(stdout)).toEqual({
      servers: { boxes: { type: 'stdio', command: 'sandlot', args: ['mcp', 'serve'] } },
    })
    expect((await home.init('codex', '--print', '--portable')).stdout).toContain('[mcp_servers.sandlot]')
  })

  test('`mcp init` without a target lists the installed clients and the state of their entries', async () => {
    using home = new Place()
    await home.init('cursor')
    home.write('.gemini/settings.json', '{')
    home.write('project/.mcp.json', '{}')
    const { data } = (await home.init('--json')).json()
    expect(
      data.map(({ target, scope, state }: Record<string, string>) => `${target} ${scope} ${state}`),
    ).toEqual(['claude-code project missing', 'cursor user current', 'gemini user unreadable'])
  })

  test("when run in the home folder, `mcp init` lists each client's user settings only once", async () => {
    using home = new Place()
    await home.init('cursor')
    await home.init('codex')
    const { stdout } = await home.run(['mcp', 'init', '--json=target,scope'], { cwd: home.folder })
    expect(JSON.parse(stdout).data).toEqual([
      { target: 'cursor', scope: 'user' },
      { target: 'codex', scope: 'user' },
    ])
  })

  test('`mcp init` rejects an unknown client or scope', async () => {
    using home = new Place()
    const stderr = expect.stringContaining('claude-code')
    expect(await home.init('emacs')).toMatchObject({ code: 2, stderr })
    expect(await home.init('cursor', '--scope', 'world')).toMatchObject({ code: 2 })
    expect(await home.init('cursor', '--name', 'a.b')).toMatchObject({ code: 2 })
  })
})
