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
import { Home } from './client.ts'

const key = (end: string) => `sandlot_live_${'x'.repeat(45)}${end}`

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
  const picker = home.open([])
  await picker.shows('refused the connection')
  picker.type('q')
  await picker.shows('Warning: other users of this machine can read')
  expect(await picker.ended).toBe(0)
})

test('after `config set-url` and `config set-key`, only the owner can read the settings file', async () => {
  using home = new Home()
  expect(await home.run(['config', 'set-url', 'HTTP://LOCALHOST:8080/'])).toMatchObject({ code: 0 })
  const modes = () => [home.configFile, home.configFolder].map((path) => statSync(path).mode & 0o777)
  expect(modes()).toEqual([0o600, 0o700])
  chmodSync(home.configFile, 0o644)
  chmodSync(home.configFolder, 0o755)
  const set = await home.run(['config', 'set-key', key('abcd')])
  expect(set).toMatchObject({ code: 0, stdout: '', stderr: '' })
  expect(modes()).toEqual([0o600, 0o700])
  const base_url = 'http://localhost:8080'
  expect(parse(readFileSync(home.configFile, 'utf8'))).toEqual({ base_url, api_key: key('abcd') })
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
  const flags = ['--url', 'http://127.0.0.1:1', '--api-key', key('abcd')]
  const { code, json } = await home.run(['whoami', '--json', ...flags])
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

test('saving settings preserves symbolic links to a missing and to an existing file', async () => {
  using home = new Home()
  const real = join(home.folder, 'dotfiles.toml')
  mkdirSync(home.configFolder, { recursive: true })
  symlinkSync('../../middle.toml', home.configFile)
  symlinkSync('dotfiles.toml', join(home.folder, 'middle.toml'))
  for (const base_url of ['https://a.example', 'https://b.example']) {
    expect(await home.run(['config', 'set-url', base_url])).toMatchObject({ code: 0 })
    expect(lstatSync(home.configFile).isSymbolicLink()).toBe(true)
    expect(lstatSync(real).isFile()).toBe(true)
    expect(parse(readFileSync(real, 'utf8'))).toEqual({ base_url })
  }
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

test('concurrent saves do not lose settings, and a stale lock is ignored', async () => {
  using home = new Home()
  home.writeConfig('# mine\n')
  const lock = `${home.configFile}.lock`
  writeFileSync(lock, 'stale')
  utimesSync(lock, new Date(0), new Date(0))
  const names = Array.from({ length: 8 }, (_, index) => `p${index}`)
  const addressOf = (name: string) => `https://${name}.example`
  const saves = names.map((name) => home.run(['config', 'set-url', addressOf(name), '--profile', name]))
  for (const saved of await Promise.all(saves)) expect(saved).toMatchObject({ code: 0, stderr: '' })
  const { profiles } = parse(readFileSync(home.configFile, 'utf8'))
  expect(profiles).toEqual(Object.fromEntries(names.map((name) => [name, { base_url: addressOf(name) }])))
  expect(readFileSync(home.configFile, 'utf8')).toMatch(/^# mine\n/)
  expect(readdirSync(home.configFolder)).toEqual(['config.toml'])
})
