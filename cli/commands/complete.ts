/** Implements `sandlot __complete`, which the completion scripts call. */
import type { Command } from 'commander'
import { readLine, writeWords } from '../completion/bash.ts'
import { type Completion, complete } from '../completion/candidates.ts'
import { directives } from '../completion/scripts.ts'
import type { Candidate } from '../completion/sources.ts'
import type { CommandTree, Define } from '../core/command.ts'
import { oneLine } from '../core/printable.ts'

interface Options {
  line?: string
  breaks: string
  type: string
}

export const define: Define = (command, _exitWith, describeProgram) => {
  command
    .argument('[word...]', 'after --: the words after the program name, the last one up to the cursor')
    .option('--line <text>', "bash's COMP_LINE up to the cursor, instead of words")
    .option('--breaks <letters>', 'COMP_WORDBREAKS', '')
    .option('--type <number>', 'COMP_TYPE', '')
    .action(async () => {
      const text = await answer(command, describeProgram())
      // A pending request must not block the prompt.
      process.stdout.write(text, () => process.exit())
    })
}

/**
 * Returns the completions, one per line, followed by a directive for the completion script. Returns an empty
 * string on error.
 */
async function answer(command: Command, commands: CommandTree): Promise<string> {
  const { line, breaks, type } = command.opts<Options>()
  try {
    if (line === undefined) {
      const completion = await completeWords(commands, command.args.slice(0, -1), command.args.at(-1) ?? '')
      return write(completion, completion.candidates.map(describe))
    }
    const cursor = readLine(line, breaks)
    const completion = await completeWords(commands, cursor.words.slice(1), cursor.current)
    return write(completion, writeWords(completion.candidates, cursor, type))
  } catch {
    return ''
  }
}

async function completeWords(commands: CommandTree, words: string[], current: string): Promise<Completion> {
  const completion = await complete(commands, words, current)
  // Candidates are separate lines, so values with line breaks or control characters are omitted.
  const candidates = completion.candidates
    .filter(({ value }) => value === oneLine(value))
    .map(({ value, description }) => ({ value, description: description && oneLine(description) }))
  return { ...completion, candidates }
}

const describe = ({ value, description }: Candidate): string =>
  description === undefined ? value : `${value}\t${description}`

function write({ candidates, files }: Completion, lines: string[]): string {
  const [only] = candidates
  const isPrefix = candidates.length === 1 && /[/:]$/.test(only?.value ?? '')
  const directive = (isPrefix ? directives.noSpace : 0) + (files ? 0 : directives.noFiles)
  return [...lines, `:${directive}`].map((text) => `${text}\n`).join('')
}
