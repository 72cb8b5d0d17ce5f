/** What holds for all commands: that they cover the API, and that each explains itself. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { expect, test } from 'vitest'
import { examplesOf } from '../../cli/core/command.ts'
import { describeProgram } from '../../cli/core/program.ts'
import { routes } from '../../shared/contract/routes.ts'

const clientFolder = join(import.meta.dirname, '..', '..', 'cli')

/** Sources of the commands and what they are made of; the picker does not count. */
const sources = readdirSync(clientFolder, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !/^(ui|dist)\//.test(path))
  .map((path) => readFileSync(join(clientFolder, path), 'utf8'))
  .join('\n')

test('everything that the API can do has a command', () => {
  // They come with `exec ls` and `exec logs`.
  const isCalled = (name: string) =>
    new RegExp(`(call|open|addressOf)\\(\\s*'${name}'|routes\\.${name}\\b`).test(sources)
  // A page for browsers.
  expect(Object.keys(routes).filter((name) => !isCalled(name))).toEqual(['getDocs'])
})

async function everyCommand(): Promise<Command[]> {
  const { program, load } = describeProgram()
  const visit = async (command: Command): Promise<Command[]> => {
    if (command !== program) await load(command)
    if (command.commands.length === 0) return [command]
    return (await Promise.all(command.commands.map(visit))).flat()
  }
  const hidden = (command: Command) => command.name().startsWith('__')
  return (await visit(program)).filter((command) => !hidden(command))
}

const nameOf = (command: Command): string =>
  command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`

test("each command's help has examples of it, with options that it knows", async () => {
  const commands = await everyCommand()
  expect(commands.length).toBeGreaterThan(30)
  for (const command of commands) {
    const name = nameOf(command)
    const lines = examplesOf(command)
    expect(lines, name).not.toEqual([])
    for (const line of lines) {
      expect(line).toContain(name)
      const [typed = ''] = line.slice(line.indexOf(name) + name.length).split(/ -- | \| |[;)>]/)
      for (const [flag] of typed.replaceAll(/'[^']*'|"[^"]*"/g, '').matchAll(/(?<= )--?[a-z-]+/g))
        expect(knows(command, flag), `${line}: ${flag}`).toBe(true)
    }
  }
})

/** `-it` is `-i -t`. */
const knows = (command: Command, flag: string): boolean => {
  const flags = flag.startsWith('--') ? [flag] : [...flag.slice(1)].map((letter) => `-${letter}`)
  return flags.every((each) => command.options.some(({ short, long }) => short === each || long === each))
}

test('each command takes the options that all have', async () => {
  for (const command of await everyCommand()) {
    const flags = command.options.map(({ long }) => long)
    for (const flag of ['--json', '--quiet', '--no-input', '--yes', '--debug', '--color', '--profile'])
      expect(
        flags.filter((each) => each === flag),
        `${nameOf(command)} ${flag}`,
      ).toEqual([flag])
  }
})
