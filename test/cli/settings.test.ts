import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { expect, test } from 'vitest'
import { clientPath, Home } from './client.ts'
import { openTerminal } from './terminal.ts'

const key = (end: string) => `sandlot_live_${'x'.repeat(45)}${end}`

test('a flag overrides the environment, and the environment overrides the settings file', async () => {
  using home = new Home()
  home.writeConfig(`base_url = "https://file.example"\napi_key = "${key('file')}"\n`)
  const env = {
    SANDLOT_URL: 'https://environment.example',
    SANDLOT_API_KEY: key('envi'),
    SANDLOT_SESSION: 'sbx_e',
  }
  const flags = ['--url', 'https://flag.example', '--api-key', key('flag'), '--session', 'sbx_f']
  const show = async (args: string[], more = {}) =>
    (await home.run(['config', 'show', '--json', ...args], more)).json()

  expect(await show(flags, { env })).toEqual({
    base_url: { value: 'https://flag.example', source: '--url' },
    api_key: { value: '…flag', source: '--api-key' },
    session: { value: 'sbx_f', source: '--session' },
    file: home.configFile,
    profile: null,
    profiles: [],
  })
  expect(await show([], { env })).toEqual({
    base_url: { value: 'https://environment.example', source: 'SANDLOT_URL' },
    api_key: { value: '…envi', source: 'SANDLOT_API_KEY' },
    session: { value: 'sbx_e', source: 'SANDLOT_SESSION' },
    file: home.configFile,
    profile: null,
    profiles: [],
  })
  expect(await show([])).toEqual({
    base_url: { value: 'https://file.example', source: home.configFile },
    api_key: { value: '…file', source: home.configFile },
    session: null,
    file: home.configFile,
    profile: null,
    profiles: [],
  })
  expect(await show([], { env: { SANDLOT_URL: '' } })).toMatchObject({
    base_url: { source: home.configFile },
  })
})

test('`config show` prints the source of each setting, but never the key', async () => {
  using home = new Home()
  home.writeConfig(`base_url = "https://file.example"\napi_key = "${key('abcd')}"\n`)
  const { code, stdout, stderr } = await home.run(['config', 'show'], {
    env: { SANDLOT_URL: 'https://b.example' },
  })
  expect(code).toBe(0)
  expect(stdout).toMatch(/^base_url +https:\/\/b\.example +\(SANDLOT_URL\)$/m)
  expect(stdout).toMatch(
    /^api_key +not set +\(…abcd \(.*config\.toml\) is sent to https:\/\/file\.example\)$/m,
  )
  expect(stdout).toMatch(/^session +not set$/m)
  expect(stdout + stderr).not.toContain('xxxx')
})

test('each command warns once if other users can read a settings file that contains a key', async () => {
  using home = new Home()
  home.writeConfig(`base_url = "http://127.0.0.1:1"\n[profiles.work]\napi_key = "${key('work')}"\n`)
  chmodSync(home.configFile, 0o640)
  const warning = `Warning: other users of this machine can read ${home.configFile}. Run chmod 600 ${home.configFile}.\n`
  expect((await home.run(['config', 'show'])).stderr).toBe(warning)
  expect((await home.run(['whoami', '--api-key', key('flag')])).stderr.split(warning)).toHaveLength(2)
  expect((await home.run(['config', 'show', '--quiet'])).stderr).toBe('')
  chmodSync(home.configFile, 0o600)
  expect((await home.run(['config', 'show'])).stderr).toBe('')
  chmodSync(home.configFile, 0o644)
  home.writeConfig('base_url = "http://127.0.0.1:1"\n')
  expect((await home.run(['config', 'show'])).stderr).toBe('')
})

test('the warning that other users can read the saved key is printed after the picker exits', async () => {
  using home = new Home()
  home.writeConfig(`base_url = "http://127.0.0.1:1"\napi_key = "${key('abcd')}"\n`)
  chmodSync(home.configFile, 0o644)
  const picker = openTerminal([process.execPath, clientPath], home.environment())
  await picker.shows('refused the connection')
  picker.type('q')
  await picker.shows('Warning: other users of this machine can read')
  expect(await picker.ended).toBe(0)
})

test('`config set-url` and `config set-key` create a settings file that only its owner can read', async () => {
  using home = new Home()
  expect(await home.run(['config', 'set-url', 'HTTP://LOCALHOST:8080/'])).toMatchObject({ code: 0 })
  expect(await home.run(['config', 'set-key', key('abcd')])).toMatchObject({
    code: 0,
    stdout: '',
    stderr: '',
  })
  expect(parse(readFileSync(home.configFile, 'utf8'))).toEqual({
    base_url: 'http://localhost:8080',
    api_key: key('abcd'),
  })
  expect(modeOf(home.configFile)).toBe('600')
  expect(modeOf(home.configFolder)).toBe('700')
})

test("saving settings removes other users' permissions from the file and folder", async () => {
  using home = new Home()
  home.writeConfig('base_url = "https://a.example"\n')
  chmodSync(home.configFile, 0o644)
  chmodSync(home.configFolder, 0o755)
  await home.run(['config', 'set-key', key('abcd')])
  expect(modeOf(home.configFile)).toBe('600')
  expect(modeOf(home.configFolder)).toBe('700')
})

test('`config set-key` reads the key from a pipe, and does not prompt without a terminal', async () => {
  using home = new Home()
  expect(await home.run(['config', 'set-key', '-'], { input: `${key('pipe')}\n` })).toMatchObject({ code: 0 })
  expect(parse(readFileSync(home.configFile, 'utf8'))).toEqual({ api_key: key('pipe') })
  expect(await home.run(['config', 'set-key'])).toMatchObject({ code: 2 })
  expect(await home.run(['config', 'set-key', 'two words'])).toMatchObject({ code: 2 })
  expect(await home.run(['config', 'set-key', 'line\nbreak'])).toMatchObject({ code: 2 })
})

test.each(['hello', key('abc'), key('abcde'), `sandlot_live_${'-'.repeat(49)}`])(
  '`config set-key` rejects the invalid API key %s and keeps the saved key',
  async (wrong) => {
    using home = new Home()
    await home.run(['config', 'set-key', key('abcd')])
    const before = readFileSync(home.configFile, 'utf8')
    const { code, stderr } = await home.run(['config', 'set-key', wrong])
    expect(code).toBe(2)
    expect(stderr).toContain('sandlot_live_ followed by 49 letters and digits')
    expect(stderr).not.toContain(wrong)
    expect(readFileSync(home.configFile, 'utf8')).toBe(before)
  },
)

test('saving settings keeps unknown settings and comments in the file', async () => {
  using home = new Home()
  const text =
    '# mine\ncolour = "blue"\nbase_url = "https://old.example" # the old one\n\n[later]\n# deep\nbase_url = "kept"\nwhen = 2026-11-21\n'
  home.writeConfig(text)
  await home.run(['config', 'set-url', 'https://new.example'])
  await home.run(['config', 'set-key', key('abcd')])
  expect(readFileSync(home.configFile, 'utf8')).toBe(
    `api_key = "${key('abcd')}"\n${text.replace('base_url = "https://old.example" # the old one', 'base_url = "https://new.example"')}`,
  )
})

test('rewriting the whole settings file loses no settings', async () => {
  using home = new Home()
  home.writeConfig(
    'base_url = """\nhttps://old.example"""\n"api_key" = "old"\nothers = ["""\nbase_url = 1\n"""]\n',
  )
  await home.run(['config', 'set-url', 'https://new.example'])
  expect(parse(readFileSync(home.configFile, 'utf8'))).toEqual({
    base_url: 'https://new.example',
    api_key: 'old',
    api_key_url: 'https://old.example',
    others: ['base_url = 1\n'],
  })
})

test('saving settings rejects a malformed file and leaves it unchanged', async () => {
  using home = new Home()
  const text = `base_url = "https://a.example"\napi_key = "${key('abcd')}\n`
  home.writeConfig(text)
  const before = statSync(home.configFile)
  const runs = [
    await home.run(['config', 'set-url', 'https://b.example']),
    await home.run(['config', 'set-key', key('efgh')]),
    await home.run(['config', 'show']),
    await home.run(['whoami']),
    await home.run(['signup', '--url', 'https://a.example', '--email', 'a@example.com', '--password-stdin'], {
      input: 'a long password',
    }),
  ]
  for (const { code, stderr } of runs) {
    expect(stderr).toContain('not valid TOML')
    expect(stderr).not.toContain('xxxx')
    expect(code).toBe(2)
  }
  expect(readFileSync(home.configFile, 'utf8')).toBe(text)
  expect(statSync(home.configFile)).toMatchObject({ ino: before.ino, mtimeMs: before.mtimeMs })
})

test('a malformed settings file is ignored if flags and the environment provide all settings', async () => {
  using home = new Home()
  home.writeConfig('broken')
  const { code, json } = await home.run([
    'whoami',
    '--json',
    '--url',
    'http://127.0.0.1:1',
    '--api-key',
    key('abcd'),
  ])
  expect(code).toBe(8)
  expect(json().error.code).toBe('network')
})

test('an error names the setting whose value has the wrong type', async () => {
  using home = new Home()
  home.writeConfig('base_url = 1\n')
  const { code, stderr } = await home.run(['whoami'])
  expect(code).toBe(2)
  expect(stderr).toContain('base_url')
})

test('saving settings preserves a symbolic link to the settings file', async () => {
  using home = new Home()
  const real = join(home.folder, 'dotfiles.toml')
  writeFileSync(real, 'base_url = "https://a.example"\n')
  mkdirSync(home.configFolder, { recursive: true })
  symlinkSync(real, home.configFile)
  await home.run(['config', 'set-url', 'https://b.example'])
  expect(parse(readFileSync(real, 'utf8'))).toEqual({ base_url: 'https://b.example' })
  expect(readFileSync(home.configFile, 'utf8')).toBe(readFileSync(real, 'utf8'))
})

test('saving settings preserves a symbolic link to a missing file', async () => {
  using home = new Home()
  const real = join(home.folder, 'dotfiles.toml')
  mkdirSync(home.configFolder, { recursive: true })
  symlinkSync('../../middle.toml', home.configFile)
  symlinkSync('dotfiles.toml', join(home.folder, 'middle.toml'))
  expect(await home.run(['config', 'set-url', 'https://b.example'])).toMatchObject({ code: 0 })
  expect(lstatSync(home.configFile).isSymbolicLink()).toBe(true)
  expect(parse(readFileSync(real, 'utf8'))).toEqual({ base_url: 'https://b.example' })
})

test('a reader never sees a partial settings file, and no temporary file remains', async () => {
  using home = new Home()
  home.writeConfig(`base_url = "https://a.example"\nlong = "${'y'.repeat(100_000)}"\n`)
  const enough = 20
  let reads = 0
  let writing = true
  // Writes until the reader has read often enough.
  async function write(index: number) {
    do {
      const { code } = await home.run(['config', 'set-url', `https://${index}.example`])
      expect(code).toBe(0)
    } while (reads < enough)
  }
  const writers = Promise.all(Array.from({ length: 6 }, (_, index) => write(index))).finally(() => {
    writing = false
  })
  while (writing) {
    const { base_url, long } = parse(readFileSync(home.configFile, 'utf8'))
    expect(base_url).toMatch(/^https:\/\/\w+\.example$/)
    expect(long).toHaveLength(100_000)
    reads += 1
    await new Promise(setImmediate)
  }
  await writers
  expect(readdirSync(home.configFolder)).toEqual(['config.toml'])
})

test('a failed save keeps the old settings file and leaves no temporary file', async () => {
  using home = new Home()
  mkdirSync(home.configFile, { recursive: true })
  expect(await home.run(['config', 'set-url', 'https://a.example'])).toMatchObject({ code: 2 })
  expect(readdirSync(home.configFolder)).toEqual(['config.toml'])
})

test('the client uses ~/.config if XDG_CONFIG_HOME is missing or relative', async () => {
  using home = new Home()
  await home.run(['config', 'set-url', 'https://a.example'], { env: { XDG_CONFIG_HOME: 'relative' } })
  expect(existsSync(join(home.folder, '.config', 'sandlot', 'config.toml'))).toBe(true)
})

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

test('concurrent saves do not lose settings, and a stale lock is ignored', async () => {
  using home = new Home()
  home.writeConfig('# mine\n')
  const lock = `${home.configFile}.lock`
  writeFileSync(lock, 'stale')
  utimesSync(lock, new Date(0), new Date(0))
  const names = Array.from({ length: 8 }, (_, index) => `p${index}`)
  const saves = names.map((name) =>
    home.run(['config', 'set-url', `https://${name}.example`, '--profile', name]),
  )
  for (const saved of await Promise.all(saves)) expect(saved).toMatchObject({ code: 0, stderr: '' })
  const { profiles } = parse(readFileSync(home.configFile, 'utf8'))
  expect(profiles).toEqual(
    Object.fromEntries(names.map((name) => [name, { base_url: `https://${name}.example` }])),
  )
  expect(readFileSync(home.configFile, 'utf8')).toMatch(/^# mine\n/)
  expect(readdirSync(home.configFolder)).toEqual(['config.toml'])
})
