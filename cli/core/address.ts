import { CliError } from './errors.ts'

/**
 * Validates a base address, and removes its trailing slash. Accepts `http://` only for this machine, because
 * API keys must never be sent in cleartext.
 * @param source where the address is set, for error messages: a flag, an environment variable or a file
 * @throws {CliError} `address_refused`
 */
export function readAddress(text: string, source: string): string {
  const refuse = (
    reason: string,
    hint = 'Use https://…, or http:// with exactly localhost or 127.0.0.1 as the host.',
  ) => {
    const shown = JSON.stringify(text.replace(/^([a-z]+:[/\\]+)?.*@/is, '$1…@'))
    const message = `The base address ${shown} (${source}) is not allowed: ${reason}.`
    return new CliError('address_refused', message, { hint })
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
  const host = typed[2]!.replace(/:\d*$/, '').toLowerCase()
  // The typed host must match as well, because the URL parser converts `0x7f.1` to 127.0.0.1.
  const isLocal = ['localhost', '127.0.0.1'].includes(url.hostname) && host === url.hostname
  if (url.protocol === 'http:' && !isLocal) throw refuse('the API key would be sent in cleartext')
  const path = url.pathname.replace(/\/+$/, '')
  const suffix = /\/v1(\/.*)?$/.exec(path)
  if (suffix !== null) {
    const base = `${url.origin}${path.slice(0, suffix.index)}`
    throw refuse(`it must not include ${suffix[0]}, which the client adds`, `Use ${base} instead.`)
  }
  return `${url.origin}${path}`
}
