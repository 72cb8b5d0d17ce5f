import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { beforeAll, describe, expect, test } from 'vitest'
import { readLine, writeWords } from '../../cli/completion/bash.ts'
import { complete } from '../../cli/completion/candidates.ts'
import { describeProgram } from '../../cli/program.ts'
import { shareWorld } from '../support/shared.ts'
import { clientPath, Home } from './client.ts'
import { startPeer } from './peer.ts'
import { openScreen, type Screen } from './screen.ts'
import { makeUsers, shareSession } from './users.ts'

const valuesFor = async (...words: string[]) => {
  const { candidates } = await complete(describeProgram(), words.slice(0, -1), words.at(-1)!)
  return candidates.map(({ value }) => value)
}

describe('declared commands and options', () => {
  test("completion offers every command and each command's options", async () => {
    const { program, load } = describeProgram()
    const visit = async (command: Command, path: string[]): Promise<number> => {
      const help = command.createHelp()
      const options = help.visibleOptions(command).map(({ long, short }) => long ?? short)
      expect((await valuesFor(...path, '-')).sort()).toEqual(options.sort())
      const below = help.visibleCommands(command).map((each) => each.name())
      if (command.commands.length > 0) expect(await valuesFor(...path, '')).toEqual(below)
      let count = 1
      for (const each of command.commands.filter((each) => below.includes(each.name()))) {
        await load(each)
        count += await visit(each, [...path, each.name()])
      }
      return count
    }
    expect(await visit(program, [])).toBeGreaterThan(40)
  })

  test.each([
    [['sess'], ['session']],
    [['session', 'l'], ['ls']],
    [
      ['session', 'ls', '--state', ''],
      ['active', 'destroyed', 'all'],
    ],
    [['session', 'ls', '--state=d'], ['--state=destroyed']],
    [['session', 'ls', '--state', 'all', '--st'], []],
    [['session', 'ls', '--', '--st'], []],
    [
      ['--color', 'a'],
      ['auto', 'always'],
    ],
    [['--json', '--color', 'never', 'who'], ['whoami']],
    [['--json=id', 'who'], ['whoami']],
    [['whoami', '--json=em'], ['--json=email']],
    [
      ['whoami', '--json=id,email,c'],
      ['--json=id,email,created_at', '--json=id,email,concurrent'],
    ],
    [['whoami', '--usage', '--json=sec'], ['--json=seconds']],
    [['completion', '--json='], []],
    [['completion', 'z'], ['zsh']],
    [['mcp', 'init', 'cur'], ['cursor']],
    [['mcp', 'init', 'cursor', '--scope=p'], ['--scope=project']],
    [['mcp', 'init', 'cursor', ''], []],
    [['help', 'session', 'cr'], ['create']],
    [['help', 'exit'], ['exit-codes']],
    [['exec', '--ti'], ['--timeout']],
    [['exec', 'ls', '--ti'], []],
    [['exec', '-it', '--ti'], ['--timeout']],
    [['exec', '-csleep 1', '--ti'], ['--timeout']],
    [['__c'], []],
    [['nonsense', ''], []],
  ])('completion of the words %j offers %j', async (words, values) => {
    expect(await valuesFor(...words)).toEqual(values)
  })

  test('completion leaves local file names to the shell', async () => {
    const filesFor = async (...words: string[]) =>
      (await complete(describeProgram(), words.slice(0, -1), words.at(-1)!)).files
    expect(await filesFor('files', 'put', '')).toBe(true)
    expect(await filesFor('secrets', 'create', 'A', '--from-file', '')).toBe(true)
    expect(await filesFor('cp', '')).toBe(true)
    expect(await filesFor('cp', 'box:')).toBe(false)
    expect(await filesFor('session', 'ls', '')).toBe(false)
  })
})

describe('bash command lines', () => {
  const breaks = ' \t\n"\'><=;|&(:'

  test.each([
    ['sandlot session ', ['sandlot', 'session'], '', 0],
    ['sandlot  a\\ b "c d" \'e f\' g', ['sandlot', 'a b', 'c d', 'e f'], 'g', 0],
    ['sandlot --state=de', ['sandlot'], '--state=de', 8],
    ['sandlot --url=http://h', ['sandlot'], '--url=http://h', 11],
    ['sandlot "a\\"b', ['sandlot'], 'a"b', 0],
    ["sandlot x'y z", ['sandlot'], 'xy z', 1],
    ['sandlot "a=b', ['sandlot'], 'a=b', 0],
  ])('completion splits the line %j as bash does', (line, words, current, kept) => {
    expect(readLine(line, breaks)).toMatchObject({ words, current, kept })
  })

  test('completion quotes candidates in the same style as the typed word', () => {
    const write = (line: string, value: string) => writeWords([{ value }], readLine(line, breaks), '9')
    expect(write('sandlot a', "a b$c'd")).toEqual(["a\\ b\\$c\\'d"])
    expect(write('sandlot "a', 'a b$c')).toEqual(['a b\\$c'])
    expect(write("sandlot 'a", 'a b$c')).toEqual(['a b$c'])
    expect(write("sandlot 'a", "a'b")).toEqual([])
    expect(write('sandlot --state=a', '--state=all')).toEqual(['all'])
  })
})

describe('completion in a shell', () => {
  const world = shareWorld()
  const user = shareSession(makeUsers(world))
  const folder = () => join(user.home.folder, 'here')

  beforeAll(async () => {
    mkdirSync(folder())
    writeFileSync(join(folder(), 'local-file.txt'), '')
    const program = join(user.home.folder, 'sandlot')
    writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${clientPath}' "$@"\n`)
    chmodSync(program, 0o755)
    for (const path of ['sub/plain', 'sub/with space', '.hidden'])
      expect(await user.run(['files', 'create', path, '--content', 'x'])).toMatchObject({ code: 0 })
    const made = await user.run(['exec', '-c', "touch 'new\nline' && mkdir only && touch only/one"])
    expect(made.code).toBe(0)
  })

  test('completion omits paths with line breaks, and hidden paths unless the user types a dot', async () => {
    const { stdout } = await user.run(['__complete', '--', 'files', 'view', ''])
    expect(stdout).toBe('only/\nsub/\n:4\n')
    const hidden = await user.run(['__complete', '--', 'files', 'view', '.h'])
    expect(hidden.stdout).toBe('.hidden\n:4\n')
    const one = await user.run(['__complete', '--', 'exec', '--cwd', '/workspace/only', 'cat', ''])
    expect(one.stdout).toBe('one\n:4\n')
    const there = await user.run(['__complete', '--', 'cp', `${user.id}:only/`])
    expect(there.stdout).toBe(`${user.id}:only/one\n:4\n`)
    const whose = await user.run(['__complete', '--', 'cp', 'sbx'])
    expect(whose.stdout).toMatch(new RegExp(`^${user.id}:\t.*\n:2\n$`))
  })

  test('completion offers command ids after `logs`, `kill` and `attach`, but not after `exec`', async () => {
    const [{ id, command }] = (await user.run(['ps', '--json'])).json().data
    const complete = async (...words: string[]) =>
      (await user.run(['__complete', '--', ...words, ''])).stdout.split('\n')[0]
    const shown = `${id}\texited ${command.replace('\n', ' ')}`
    for (const words of [['logs'], ['logs', '-f'], ['kill', '--signal', 'INT'], ['attach']])
      expect(await complete(...words)).toBe(shown)
    expect(await complete('exec', 'logs')).toBe('only/')
    expect(await complete('exec', 'kill', '42')).toBe('only/')
  })

  test('completion prints no error if the service is unreachable or no key is saved', async () => {
    await using silent = await startPeer(() => {})
    await using odd = await startPeer((_, response) => response.end('<html>'))
    for (const url of ['http://127.0.0.1:1', silent.url, odd.url]) {
      const ran = await user.run(['__complete', '--', '--url', url, 'session', 'get', ''])
      expect(ran).toMatchObject({ stdout: ':4\n', stderr: '', code: 0 })
    }
    using fresh = new Home()
    const ran = await fresh.run(['__complete', '--', 'session', 'get', ''])
    expect(ran).toMatchObject({ stdout: ':4\n', stderr: '', code: 0 })
  })

  /** @param typed must end with TAB */
  async function press(screen: Screen, typed: string, becomes: string): Promise<void> {
    screen.type(typed)
    // Another letter shows where the cursor is.
    await screen.shows(`$ ${becomes.trimEnd()}`)
    screen.type('#')
    await screen.shows(`$ ${becomes}#`)
    screen.type('\x15')
    await screen.hides(becomes.trimEnd())
  }

  const walk = async (screen: Screen, space: string) => {
    await press(screen, 'sandlot sess\t', 'sandlot session ')
    await press(screen, 'sandlot session rm sb\t', `sandlot session rm ${user.id} `)
    await press(screen, 'sandlot session ls --state de\t', 'sandlot session ls --state destroyed ')
    await press(screen, 'sandlot session ls --state=de\t', 'sandlot session ls --state=destroyed ')
    await press(screen, 'sandlot files view su\t', 'sandlot files view sub/')
    await press(screen, 'sandlot files view sub/w\t', `sandlot files view sub/${space} `)
    await press(screen, 'sandlot files put loc\t', 'sandlot files put local-file.txt ')
  }

  const open = (command: string[], more: Record<string, string> = {}) => {
    const path = `${user.home.folder}:${process.env.PATH}`
    const env = user.home.environment({ PATH: path, PS1: '$ ', LC_ALL: 'C.UTF-8', ...more })
    return openScreen(['sh', '-c', 'cd "$0" && exec "$@"', folder(), ...command], env, { columns: 100 })
  }
  const has = (shell: string) => spawnSync(shell, ['--version']).error === undefined

  test('bash completes commands, sessions, values and paths', async () => {
    const script = join(user.home.folder, 'completion.bash')
    writeFileSync(script, `${(await user.run(['completion', 'bash'])).stdout}PS1='$ '\n`)
    using screen = open(['bash', '--noprofile', '--rcfile', script, '-i'])
    await screen.shows('$')
    await walk(screen, 'with\\ space')
    await press(screen, 'sandlot files view "sub/w\t', 'sandlot files view "sub/with space" ')
    screen.type('sandlot session ls --state=\t\t')
    await screen.shows(/^active +all +destroyed|^active +destroyed +all/m)
    screen.type('\x15sandlot ses\trm \t\t')
    await screen.shows(`sandlot session rm ${user.id}`)
    screen.type('\x15sandlot key\t\x15sandlot se\t\t')
    await screen.shows(/^session +\(create, show/m)
  })

  test.skipIf(!has('zsh'))('zsh completes commands, sessions and paths', async () => {
    const rc = `autoload -U compinit; compinit -u -D; source <(sandlot completion zsh); PROMPT='$ '; unsetopt prompt_sp\n`
    writeFileSync(join(folder(), '.zshrc'), rc)
    using screen = open(['zsh', '-i'], { ZDOTDIR: folder() })
    await screen.shows('$')
    await walk(screen, 'with\\ space')
  })

  test.skipIf(!has('fish'))('fish completes commands, sessions and paths', async () => {
    using screen = open(['fish', '--no-config', '-i'])
    await screen.shows(/[>#]/)
    screen.type("function fish_prompt; echo '$ '; end; sandlot completion fish | source; clear\r")
    await screen.shows(/^\$/m)
    await walk(screen, 'with\\ space')
  })
})
