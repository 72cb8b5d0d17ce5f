import { limits } from '../../shared/contract/limits.ts'
import { type Automaton, buildAutomaton } from './automaton.ts'

export interface SecretPatterns {
  automaton: Automaton
  names: string[]
  lengths: number[]
}

/**
 * Builds the patterns that find secrets in output and files.
 * @param secrets values by name
 * @param byLine whether to also find single lines of a value, for text that is only a part of a file
 * @returns undefined if there is nothing to find
 */
export async function buildPatterns(
  secrets: Readonly<Record<string, string>>,
  { byLine = false } = {},
): Promise<SecretPatterns | undefined> {
  const shapesOf = byLine ? linesOf : wholeOf
  const values = Object.entries(secrets)
    .flatMap(([name, text]) =>
      [...new Set(shapesOf(text))].map((text) => ({ name, bytes: Buffer.from(text) })),
    )
    .filter(({ bytes }) => bytes.length >= limits.blankedBytes)
  if (values.length === 0) return undefined
  return {
    automaton: await buildAutomaton(values.map(({ bytes }) => bytes)),
    names: values.map(({ name }) => name),
    lengths: values.map(({ bytes }) => bytes.length),
  }
}

/**
 * Returns the forms in which a value may appear in output. `$(…)` drops trailing newlines, and a terminal
 * turns the other newlines into CR LF.
 */
function wholeOf(text: string): string[] {
  return [text, bare(text)].flatMap((text) => [text, text.replace(/\r?\n/g, '\r\n')])
}

/** Removes trailing newlines. A regular expression would take quadratic time for long runs of newlines. */
function bare(text: string): string {
  let end = text.length
  while (end > 0 && (text[end - 1] === '\n' || text[end - 1] === '\r')) end--
  return text.slice(0, end)
}

const linesOf = (text: string): string[] => [...wholeOf(text), ...text.split(/\r?\n/)]
