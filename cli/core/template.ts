/** `--template`: a result through a Mustache template. Loaded only when one is given. */
import Mustache from 'mustache'
import { CliError } from './errors.ts'

/** @throws {CliError} `usage` for what is no template */
export function readTemplate(text: string): (value: unknown) => string {
  const template = text.replace(/\\([\\nt])/g, (_, letter: string) => escapes[letter]!)
  try {
    Mustache.parse(template)
  } catch (error) {
    throw new CliError('usage', `--template is no Mustache template: ${(error as Error).message}.`, {
      hint: "Such as --template '{{id}} {{state}}', or of a list '{{#data}}{{id}}\\n{{/data}}'.",
    })
  }
  return (value) => {
    const shown = Mustache.render(template, value, {}, { escape: show })
    return shown === '' || shown.endsWith('\n') ? shown : `${shown}\n`
  }
}

const escapes: Record<string, string> = { n: '\n', t: '\t', '\\': '\\' }

/** Mustache would write HTML. */
const show = (value: unknown): string => (typeof value === 'object' ? JSON.stringify(value) : String(value))
