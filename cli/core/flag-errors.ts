/** Rewrites field errors from the service to name command-line options instead of request fields. */
import type { Command } from 'commander'
import { shellWord } from '../../shared/contract/shell-words.ts'
import type { CliError } from './errors.ts'
import { showSeconds } from './times.ts'

/** Option names that cannot be derived from the request field. */
const otherNames: Record<string, string> = { expires_at: 'ttl', start_line: 'lines', end_line: 'lines' }
const unit = /_(ms|seconds)$/
/** Maximum length of a value quoted in an error message. Longer values are omitted. */
const maxCharacters = 60

export function inTermsOfFlags(error: CliError, command: Command): CliError {
  const { errors } = error.details
  const fields = Array.isArray(errors) ? (errors as { path: string; message: string }[]) : []
  const message = fields.reduce(
    (text, { path, message }) => text.replace(`${path}: ${message}`, () => describe(path, message, command)),
    error.message,
  )
  return error.with({ message })
}

function describe(path: string, message: string, command: Command): string {
  const [field = '', ...below] = path.split('.')
  const name = otherNames[field] ?? field.replace(unit, '').replaceAll('_', '-')
  const place = findPlace(name, command)
  if (place === undefined) return `${path}: ${message}`
  const { flag, value } = place
  const isShown = typeof value === 'string' && value.length <= maxCharacters && field !== 'password'
  const words = [flag, ...below, ...(isShown ? [shellWord(value)] : [])].join(' ')
  const predicate = unit.test(field)
    ? message.replace(/\d+$/, (number) => showSeconds(Number(number) / (field.endsWith('_ms') ? 1000 : 1)))
    : message
  return /^must /.test(predicate) ? `${words} ${predicate}` : `${words}: ${predicate}`
}

function findPlace(name: string, command: Command): { flag: string; value: unknown } | undefined {
  const option = command.options.find(({ long }) => long === `--${name}`)
  if (option !== undefined)
    return { flag: `--${name}`, value: command.getOptionValue(option.attributeName()) }
  const index = command.registeredArguments.findIndex((argument) => argument.name() === name)
  return index < 0 ? undefined : { flag: `<${name}>`, value: command.args[index] }
}
