import type { Argument, Command, Option } from 'commander'
import { type CommandTree, fieldsOf } from '../core/command.ts'
import { topics } from '../core/topics.ts'
import { type Candidate, openSources } from './sources.ts'

export interface Completion {
  candidates: Candidate[]
  /** Whether the shell should also offer local files. */
  files: boolean
}

/**
 * Returns completions for the current word.
 * @param words the words between the program name and the current word
 * @param current the part of the current word before the cursor
 */
export async function complete(commands: CommandTree, words: string[], current: string): Promise<Completion> {
  const line = await readLine(commands, words)
  const completion = await findCandidates(line, current)
  const fits = ({ value }: Candidate) => value.startsWith(current)
  return { ...completion, candidates: completion.candidates.filter(fits) }
}

interface TypedLine {
  command: Command
  operands: string[]
  options: Record<string, string>
  seen: Set<Option>
  /** Option that takes the next word as its value. */
  pending: Option | undefined
  ended: boolean
  helping: boolean
}

async function readLine({ program, load }: CommandTree, words: string[]): Promise<TypedLine> {
  const line: TypedLine = {
    command: program,
    operands: [],
    options: {},
    seen: new Set(),
    pending: undefined,
    ended: false,
    helping: words[0] === 'help',
  }
  for (const word of line.helping ? words.slice(1) : words) {
    const below = line.ended || line.operands.length > 0 ? undefined : subcommand(line.command, word)
    if (line.pending !== undefined) {
      line.options[line.pending.attributeName()] = word
      line.pending = undefined
    } else if (line.ended) line.operands.push(word)
    else if (word === '--') line.ended = true
    else if (word.startsWith('-') && word !== '-') readOption(line, word)
    else if (below !== undefined) {
      line.command = below
      await load(below)
    } else {
      line.operands.push(word)
      line.ended = passesOptionsOn(line.command)
    }
  }
  return line
}

const subcommand = ({ commands }: Command, word: string): Command | undefined =>
  commands.find((each) => each.name() === word || each.aliases().includes(word))

/** Parses `--name value`, `--name=value`, `-n value`, `-nvalue` and `-abc`. */
function readOption(line: TypedLine, word: string): void {
  if (word.startsWith('--')) {
    const [, flag = word, value] = withValue.exec(word) ?? []
    takeOption(line, flag, value)
    return
  }
  for (const [index, letter] of [...word].entries()) {
    if (index === 0) continue
    const rest = word.slice(index + 1)
    const option = line.command.options.find(({ short }) => short === `-${letter}`)
    takeOption(line, `-${letter}`, option?.required && rest !== '' ? rest : undefined)
    if (option?.required) return
  }
}

const withValue = /^(--[^=]+)=(.*)$/s

function takeOption(line: TypedLine, flag: string, value: string | undefined): void {
  const option = line.command.options.find(({ short, long }) => flag === long || flag === short)
  if (option === undefined) return
  line.seen.add(option)
  if (value !== undefined) line.options[option.attributeName()] = value
  else if (option.required) line.pending = option
}

const passesOptionsOn = (command: Command): boolean =>
  command.parseOptions(['operand', '--no-such-option']).unknown.length === 0

async function findCandidates(line: TypedLine, current: string): Promise<Completion> {
  const { command, operands, pending, ended, helping } = line
  if (pending !== undefined) return await values(line, pending, current)
  if (!ended && !helping && current.startsWith('-')) {
    const [, flag, value] = withValue.exec(current) ?? []
    if (flag === undefined) return noFiles(optionsOf(line))
    if (flag === '--json') return prefix('--json=', noFiles(fieldsFor(line, value!)))
    const option = command.options.find(({ long }) => long === flag)
    return option === undefined ? noFiles([]) : prefix(`${flag}=`, await values(line, option, value!))
  }
  if (operands.length === 0 && !ended && command.commands.length > 0) return noFiles(subcommands(line))
  const argument = command.registeredArguments[operands.length] ?? command.registeredArguments.at(-1)
  const isLast = operands.length < command.registeredArguments.length || argument?.variadic
  return argument !== undefined && isLast ? await values(line, argument, current) : noFiles([])
}

function fieldsFor({ command, seen }: TypedLine, typed: string): Candidate[] {
  const before = typed.slice(0, typed.lastIndexOf(',') + 1)
  const given = Object.fromEntries([...seen].map((option) => [option.attributeName(), true]))
  return fieldsOf(command, given)
    .filter((field) => !before.split(',').includes(field))
    .map((field) => ({ value: `${before}${field}` }))
}

const noFiles = (candidates: Candidate[]): Completion => ({ candidates, files: false })

const prefix = (text: string, { candidates, files }: Completion): Completion => ({
  files,
  candidates: candidates.map(({ value, description }) => ({ value: text + value, description })),
})

/** Returns the options that can still be added to the command line, with the global options last. */
function optionsOf({ command, seen }: TypedLine): Candidate[] {
  const options = command
    .createHelp()
    .visibleOptions(command)
    .filter((option) => !seen.has(option) || isRepeatable(option))
  return [
    ...options.filter(({ helpGroupHeading }) => helpGroupHeading === undefined),
    ...options.filter(({ helpGroupHeading }) => helpGroupHeading !== undefined),
  ].map(({ long, short, description }) => ({ value: long ?? short!, description }))
}

/** Returns whether an option is repeatable. Only such options, and options with choices, have a parser. */
const isRepeatable = ({ variadic, parseArg, argChoices }: Option): boolean =>
  variadic || (parseArg !== undefined && argChoices === undefined)

function subcommands({ command, helping }: TypedLine): Candidate[] {
  const below = command
    .createHelp()
    .visibleCommands(command)
    .map((each) => ({ value: each.name(), description: each.description() }))
  if (!helping) return below
  const further = command.parent === null ? Object.keys(topics).map((value) => ({ value })) : []
  return [...below.filter(({ value }) => value !== 'help'), ...further]
}

/** Completes a value with its declared choices, or with values that fit a placeholder such as `<id>`. */
async function values(line: TypedLine, wanted: Option | Argument, current: string): Promise<Completion> {
  const { operands, options } = line
  const sources = openSources(options)
  if (wanted.argChoices !== undefined) return noFiles(wanted.argChoices.map((value) => ({ value })))
  switch (nameOf(wanted)) {
    case 'file':
    case 'local':
      return { candidates: [], files: true }
    case 'profile':
      return noFiles(await sources.profiles())
    case 'id':
      return noFiles((await sources.sessions(current)).filter(({ value }) => !operands.includes(value)))
    case 'path':
    case 'new-path':
      return noFiles(await sources.paths(current))
    case 'source':
    case 'target':
      return await placesToCopy(options, current)
    case 'exec-id':
      return noFiles(await sources.commands())
    case 'command':
      // The sandbox's PATH may contain any program.
      return noFiles(operands.length > 0 || current.includes('/') ? await sources.paths(current) : [])
  }
  return noFiles([])
}

/** Completes a local path or SESSION:PATH for `cp`. */
async function placesToCopy(options: Record<string, string>, current: string): Promise<Completion> {
  const [, session, path] = /^([^/:]*):(.*)$/s.exec(current) ?? []
  if (session === undefined || path === undefined) {
    const sessions = await openSources(options).sessions(current)
    return {
      files: true,
      candidates: sessions.map(({ value, ...more }) => ({ ...more, value: `${value}:` })),
    }
  }
  const sources = openSources(session === '' ? options : { ...options, session })
  return prefix(`${session}:`, noFiles(await sources.paths(path)))
}

/** Returns the name in a placeholder, such as `exec-id` for `<exec-id>`. */
const nameOf = (wanted: Option | Argument): string =>
  'flags' in wanted ? (/[<[]([^>\].]+)/.exec(wanted.flags)?.[1] ?? '') : wanted.name()
