/** The manual: made from the commands, and readable by what shows manuals. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { variables } from '../../cli/core/settings.ts'
import { clientPath, Home } from './client.ts'

let manual = ''
beforeAll(async () => {
  using home = new Home()
  const { stdout, code } = await home.run(['man'])
  expect(code).toBe(0)
  manual = stdout
})

/** As it is read: without the escapes of roff. */
const plain = (roff: string) =>
  roff
    .replace(/\\f[BR]|\\&/g, '')
    .replaceAll('\\-', '-')
    .replaceAll('\\(aq', "'")
    .replaceAll('\\(ga', '`')
    .replaceAll('\\(rs', '\\')

const has = (program: string) => spawnSync(program, ['--version']).error === undefined

test('the package carries it as it is printed', () => {
  expect(readFileSync(join(dirname(clientPath), 'man', 'sandlot.1'), 'utf8')).toBe(manual)
})

test('has the sections of a manual, and a part for each command of the help', async () => {
  using home = new Home()
  const sections = [...manual.matchAll(/^\.SH (.*)$/gm)].map(([, title]) => title!.replaceAll('"', ''))
  expect(sections.slice(0, 5)).toEqual(['NAME', 'SYNOPSIS', 'DESCRIPTION', 'OPTIONS', 'COMMANDS'])
  expect(sections).toContain('EXIT CODES')
  const parts = [...manual.matchAll(/^\.SS "(.*)"$/gm)].map(([, title]) => plain(title!))
  const commandsIn = async (...path: string[]) => {
    const { stdout } = await home.run([...path, '--help'])
    const [, list = ''] = /\nCommands:\n((?: .*\n)+)/.exec(stdout) ?? []
    return [...list.matchAll(/^ {2}([\w-]+)/gm)].map(([, name]) => name!).filter((name) => name !== 'help')
  }
  const top = await commandsIn()
  expect(top.length).toBeGreaterThan(8)
  const all = await Promise.all(
    top.map(async (name) => {
      const below = await commandsIn(name)
      return below.length === 0 ? [`sandlot ${name}`] : below.map((each) => `sandlot ${name} ${each}`)
    }),
  )
  expect(parts).toEqual(all.flat())
  expect(manual).not.toContain('__complete')
})

test('names the options of a command, its choices, its examples and the variables that count', () => {
  const text = plain(manual)
  for (const words of [
    'The same is sandlot session list.',
    '-s, --session <id>',
    '--state <state>',
    'active, destroyed, all',
    '--no-create',
    '--api-key <key>',
    'sandlot session create --name build --ttl 10m',
    ...Object.keys(variables),
  ])
    expect(text).toContain(words)
})

test('holds no line that roff would take for a request, and nothing but ASCII', () => {
  const requests = new Set(['TH', 'SH', 'SS', 'PP', 'TP', 'RS', 'RE', 'nf', 'fi'])
  for (const line of manual.split('\n')) {
    const [, request] = /^[.'](\S*)/.exec(line) ?? []
    if (request !== undefined) expect(requests).toContain(request)
  }
  expect(manual).toMatch(/^\p{ASCII}*$/u)
})

test.skipIf(!has('groff'))('groff renders it without a warning', () => {
  const { stderr, stdout, status } = spawnSync('groff', ['-man', '-Tutf8', '-ww'], { input: manual })
  expect(stderr.toString()).toBe('')
  expect(status).toBe(0)
  expect(stdout.toString()).toContain('…')
})

test.skipIf(!has('man'))('man shows it', () => {
  const file = join(dirname(clientPath), 'man', 'sandlot.1')
  const env = { ...process.env, MANWIDTH: '80', MAN_KEEP_FORMATTING: '', LC_ALL: 'C.UTF-8' }
  const shown = execFileSync('man', ['-l', file], { env, encoding: 'utf8' })
  expect(shown).toMatch(/^SANDLOT\(1\)/)
  expect(shown).toContain('sandlot files put [options] <local> <path>')
  expect(shown).toContain('Print the version.')
})
