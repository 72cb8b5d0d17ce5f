/**
 * Validates base addresses. `http://` is only accepted for this machine, because API keys must never be sent
 * in cleartext.
 */
import { CliError } from './errors.ts'

const localHosts = ['localhost', '127.0.0.1']

/**
 * @param source the flag, environment variable or file that the address comes from, for error messages
 * @returns the address without a trailing slash
 * @throws {CliError} `address_refused` if the address is malformed or would send the API key in cleartext
 */
export function readAddress(text: string, source: string): string {
  const refuse = (
    reason: string,
    hint = 'Use https://…, or http:// with exactly localhost or 127.0.0.1 as the host.',
  ) => {
    const shown = JSON.stringify(withoutUser(text))
    return new CliError(
      'address_refused',
      `The base address ${shown} (${source}) is not allowed: ${reason}.`,
      {
        hint,
      },
    )
  }
  // The URL parser drops spaces and control characters and replaces \ with /.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression detects control characters
  if (/[\s\u0000-\u0020\u007f-\u009f\\]/.test(text))
    throw refuse('it contains a space, a control character or a backslash')
  const typed = /^(https?):\/\/([^/?#]+)/i.exec(text)
  if (typed === null || !URL.canParse(text)) throw refuse('it is not an http:// or https:// address')
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || typed[2]!.includes('@'))
    throw refuse('it contains a user name')
  if (text.includes('?') || text.includes('#')) throw refuse('it contains a query or a fragment')
  if (url.protocol === 'http:' && !isLocal(url.hostname, typed[2]!)) {
    throw refuse('the API key would be sent in cleartext')
  }
  const path = url.pathname.replace(/\/+$/, '')
  const suffix = /\/v1(\/.*)?$/.exec(path)
  if (suffix !== null) {
    const base = `${url.origin}${path.slice(0, suffix.index)}`
    throw refuse(`it must not include ${suffix[0]}, which the client adds`, `Use ${base} instead.`)
  }
  return `${url.origin}${path}`
}

const withoutUser = (text: string): string => text.replace(/^([a-z]+:[/\\]+)?.*@/is, '$1…@')

/**
 * True if the address refers to this machine. Also checks the address as typed, because the URL parser
 * converts `0x7f.1` to 127.0.0.1.
 */
const isLocal = (parsed: string, typed: string): boolean =>
  localHosts.includes(parsed) && typed.replace(/:\d*$/, '').toLowerCase() === parsed
