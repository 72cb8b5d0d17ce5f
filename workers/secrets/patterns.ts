/** Which bytes are to be found in output, for secrets. */
import { type Automaton, buildAutomaton } from './automaton.ts'

export interface SecretPatterns {
  automaton: Automaton
  /** By index of the value. */
  names: string[]
  lengths: number[]
}

/** Shorter values would be found by chance. Bytes. */
export const leastBytes = 8

/**
 * @param secrets by name
 * @param byLine also the lines of a value, for what is itself only some lines
 * @returns undefined when there is nothing to be found
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
    .filter(({ bytes }) => bytes.length >= leastBytes)
  if (values.length === 0) return undefined
  return {
    automaton: await buildAutomaton(values.map(({ bytes }) => bytes)),
    names: values.map(({ name }) => name),
    lengths: values.map(({ bytes }) => bytes.length),
  }
}

/** A shell's `$(…)` drops the ends of lines at the end; a terminal turns those within into CR LF. */
function wholeOf(text: string): string[] {
  return [text, bare(text)].flatMap((text) => [text, text.replace(/\r?\n/g, '\r\n')])
}

/** By hand: a regular expression tries each of the line ends within, and looks from each to the last of its run. */
function bare(text: string): string {
  let end = text.length
  while (end > 0 && (text[end - 1] === '\n' || text[end - 1] === '\r')) end--
  return text.slice(0, end)
}

const linesOf = (text: string): string[] => [...wholeOf(text), ...text.split(/\r?\n/)]
