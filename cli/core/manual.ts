/** The manual as roff (man(7)), made from the commands as they are declared. */
import type { Argument, Command, Option } from 'commander'
import { type CommandTree, examplesOf } from './command.ts'
import { pathOf } from './help.ts'
import { topics } from './topics.ts'
import { version } from './version.ts'

export async function writeManual({ program, load }: CommandTree): Promise<string> {
  const commands = await collect(program, load)
  return [
    `.TH ${quote(program.name().toUpperCase())} 1 "" ${quote(`${program.name()} ${version}`)} "User Commands"`,
    '.SH NAME',
    `${program.name()} \\- ${text(program.summary() || firstClause(program.description()))}`,
    '.SH SYNOPSIS',
    ...synopsis(program),
    '.SH DESCRIPTION',
    text(program.description()),
    '.SH OPTIONS',
    text('Every command takes these options, before its name or after it. --version stands alone.'),
    ...optionsOf(program).flatMap(item),
    '.SH COMMANDS',
    ...commands.flatMap((command) => describe(command, optionsOf(program))),
    ...Object.values(topics).flatMap((read) => describeTopic(read())),
    '',
  ].join('\n')
}

/** All that can be called, in the order of the help. */
export async function collect(
  parent: Command,
  load: (command: Command) => Promise<void>,
): Promise<Command[]> {
  const found: Command[] = []
  const visible = parent.createHelp().visibleCommands(parent)
  for (const command of parent.commands.filter((each) => visible.includes(each))) {
    await load(command)
    found.push(...(command.commands.length > 0 ? await collect(command, load) : [command]))
  }
  return found
}

function describe(command: Command, common: Option[]): string[] {
  return [
    `.SS ${quote(pathOf(command))}`,
    text(sentence(command.description())),
    ...command.aliases().map((alias) => text(`The same is ${pathOf(command.parent!)} ${alias}.`)),
    '.PP',
    ...synopsis(command),
    ...command.registeredArguments.filter(({ description }) => description !== '').flatMap(item),
    ...ownOptionsOf(command, common).flatMap(item),
    ...notesOf(command),
    ...examples(command),
  ]
}

/** Usage may have several lines. All but the first have the command's name already. */
function synopsis(command: Command): string[] {
  const [first = '', ...more] = command.usage().split('\n')
  const lines = [`${pathOf(command)} ${first}`, ...more.map((line) => line.trim())]
  return ['.nf', ...lines.map(text), '.fi']
}

export const optionsOf = (command: Command): Option[] => command.createHelp().visibleOptions(command)

/** Without those of every command. */
export const ownOptionsOf = (command: Command, common: Option[]): Option[] =>
  optionsOf(command).filter(({ long }) => !common.some((each) => each.long === long))

function item(declared: Option | Argument): string[] {
  const { description, argChoices: choices = [] } = declared
  const term = 'flags' in declared ? declared.flags : declared.name()
  const parts = [sentence(description), choices.join(', ')].filter((part) => part !== '')
  return ['.TP', bold(term), text(parts.join(' '))]
}

/** What the help says below the options; examples have a place of their own. */
function notesOf(command: Command): string[] {
  let whole = ''
  const before = command.configureOutput()
  command.configureOutput({ writeOut: (part) => (whole += part) }).outputHelp()
  command.configureOutput(before)
  const shown = examplesOf(command)
  return paragraphsOf(whole.slice(command.helpInformation().length))
    .filter((paragraph) => !shown.some((line) => paragraph.includes(line)))
    .flatMap(describeParagraph)
}

/** Its first line is its name. */
function describeTopic(topic: string): string[] {
  const [title = '', ...paragraphs] = paragraphsOf(topic)
  return [`.SH ${quote(title.toUpperCase())}`, ...paragraphs.flatMap(describeParagraph)]
}

const paragraphsOf = (words: string): string[] =>
  words
    .split(/\n{2,}/)
    .map((paragraph) => paragraph.replace(/^\n+|\s+$/g, ''))
    .filter((paragraph) => paragraph !== '')

/** Lists of terms become lists; where lines are indented for something else, they stay as they are. */
function describeParagraph(paragraph: string): string[] {
  const lines = paragraph.split('\n')
  const terms = lines.map((line) => /^\s+(\S.*?)\s{2,}(\S.*)$/.exec(line))
  if (terms.every((term) => term !== null)) {
    return terms.flatMap(([, term = '', meaning = '']) => ['.TP', bold(term), text(meaning)])
  }
  if (lines.some((line) => /^\s/.test(line))) return ['.PP', '.nf', ...lines.map(text), '.fi']
  return ['.PP', ...lines.map(text)]
}

function examples(command: Command): string[] {
  const lines = examplesOf(command)
  return lines.length === 0
    ? []
    : ['.PP', 'Examples:', '.PP', '.RS 4', '.nf', ...lines.map(text), '.fi', '.RE']
}

/** A paragraph's first words must not be read as a request, nor a letter as an escape. */
const text = (plain: string): string => plainly(plain).replace(/^(?=[.'])/, '\\&')

const bold = (plain: string): string => `\\fB${plainly(plain)}\\fR`

/** As an argument of a request. */
const quote = (plain: string): string => `"${plainly(plain).replaceAll('"', '\\(dq')}"`

const plainly = (plain: string): string =>
  plain
    .replaceAll('\\', '\\(rs')
    .replaceAll('-', '\\-')
    .replace(/[`'^~]/g, (letter) => special[letter]!)
    .replace(
      /\P{ASCII}/gu,
      (letter) => `\\[u${letter.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}]`,
    )

/** Letters that roff would print as others. */
const special: Record<string, string> = { '`': '\\(ga', "'": '\\(aq', '^': '\\(ha', '~': '\\(ti' }

const firstClause = (words: string): string =>
  (words.split(/[:.]/)[0] ?? '').replace(/^./, (letter) => letter.toLowerCase())

/** Begins with a capital and ends with a full stop. */
export const sentence = (words: string): string =>
  words === '' ? '' : `${words[0]!.toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? '' : '.'}`
