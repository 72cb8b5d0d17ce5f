/** The commands cover the whole API, and all help examples are valid. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { expect, test } from 'vitest'
import { pathOf } from '../../cli/core/help.ts'
import { describeProgram } from '../../cli/program.ts'
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { endpoints } from '../../shared/contract/index.ts'
import { routes } from '../../shared/contract/routes.ts'

const clientFolder = join(import.meta.dirname, '..', '..', 'cli')

/** Sources of the commands, without the picker. */
const sources = readdirSync(clientFolder, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !/^(ui|dist)\//.test(path))
  .map((path) => readFileSync(join(clientFolder, path), 'utf8'))
  .join('\n')

test('the client has a command for every endpoint of the API', () => {
  const isCalled = (name: string) =>
    new RegExp(`(call|open|addressOf)\\(\\s*'${name}'|routes\\.${name}\\b`).test(sources)
  // getDocs is for browsers. The MCP bridge resumes streams at the URL that it posts to.
  const others = ['getDocs', 'resumeMcp']
  expect(Object.keys(routes).filter((name) => !isCalled(name) && !others.includes(name))).toEqual([])
})

async function everyCommand(): Promise<Command[]> {
  const { program, load } = describeProgram()
  const visit = async (command: Command): Promise<Command[]> => {
    if (command !== program) await load(command)
    if (command.commands.length === 0) return [command]
    const below = command.createHelp().visibleCommands(command)
    return (await Promise.all(below.filter((each) => each.name() !== 'help').map(visit))).flat()
  }
  return await visit(program)
}

/** Returns the examples in a command's help. */
function examplesOf(command: Command): string[] {
  let help = ''
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp()
  return /\nExamples:\n((?: {2}.*\n)+)/.exec(help)?.[1]?.trimEnd().split('\n') ?? []
}

test("each command's help has examples that use only existing options", async () => {
  const commands = await everyCommand()
  expect(commands.length).toBeGreaterThan(30)
  for (const command of commands) {
    const name = pathOf(command)
    const lines = examplesOf(command)
    expect(lines, name).not.toEqual([])
    // `ls` and `rm` are `session ls` and `session rm`.
    const names = [name, name.replace(/^sandlot (ls|rm)$/, 'sandlot session $1')]
    for (const line of lines) {
      const called = names.find((each) => line.includes(each))
      expect(called, `${name}: ${line}`).toBeDefined()
      const [typed = ''] = line.slice(line.indexOf(called!) + called!.length).split(/ -- | \| |[;)>]/)
      for (const [flag] of typed.replaceAll(/'[^']*'|"[^"]*"/g, '').matchAll(/(?<= )--?[a-z-]+/g))
        expect(knows(command, flag), `${line}: ${flag}`).toBe(true)
    }
  }
})

test('the API description mentions only existing commands and options', async () => {
  const commands = await everyCommand()
  const lines = Object.values(endpoints).flatMap(({ example }: Endpoint) => example.client ?? [])
  expect(lines.length).toBeGreaterThan(30)
  for (const line of lines) {
    const [words = ''] = line.split(' -- ')
    const fits = (command: Command) => words === pathOf(command) || words.startsWith(`${pathOf(command)} `)
    const command = commands.find(fits)
    expect(command, line).toBeDefined()
    for (const [flag] of words.replaceAll(/'[^']*'|"[^"]*"/g, '').matchAll(/(?<= )--?[a-z-]+/g))
      expect(knows(command!, flag), `${line}: ${flag}`).toBe(true)
  }
})

/** `-it` is `-i -t`. */
const knows = (command: Command, flag: string): boolean => {
  const flags = flag.startsWith('--') ? [flag] : [...flag.slice(1)].map((letter) => `-${letter}`)
  return flags.every((each) => command.options.some(({ short, long }) => short === each || long === each))
}

test('each command accepts the global options', async () => {
  for (const command of await everyCommand()) {
    const flags = command.options.map(({ long }) => long)
    for (const flag of ['--json', '--quiet', '--no-input', '--yes', '--debug', '--color', '--profile'])
      expect(
        flags.filter((each) => each === flag),
        `${pathOf(command)} ${flag}`,
      ).toEqual([flag])
  }
})
