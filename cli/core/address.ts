/**
 * Which base addresses are accepted. An API key is a full-privilege, long-lived credential and must not
 * travel in cleartext: `https://` only, or `http://` to this machine.
 */
import { CliError } from './errors.ts'

/** Compared with the host as typed, and as parsed. */
const localHosts = ['localhost', '127.0.0.1']

/**
 * Reads a base address. Its path is kept as a prefix of every route.
 * @param source where it was given, for the message
 * @returns without a slash at its end
 * @throws {CliError} `address_refused`
 */
export function readAddress(text: string, source: string): string {
  const refuse = (
    why: string,
    hint = 'It must be https://…, or http:// with the host exactly localhost or 127.0.0.1.',
  ) => {
    const shown = JSON.stringify(withoutUser(text))
    return new CliError('address_refused', `The base address ${shown} (${source}) is refused: ${why}.`, {
      hint,
    })
  }
  // URL parsing drops spaces and control characters and turns \ into /, so the text must not hold any.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\s\u0000-\u0020\u007f-\u009f\\]/.test(text))
    throw refuse('it holds a space, a control character or a backslash')
  const typed = /^(https?):\/\/([^/?#]+)/i.exec(text)
  if (typed === null || !URL.canParse(text)) throw refuse('it is not an http:// or https:// address')
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || typed[2]!.includes('@'))
    throw refuse('it holds a user name')
  if (text.includes('?') || text.includes('#')) throw refuse('it holds a query or a fragment')
  if (url.protocol === 'http:' && !isLocal(url.hostname, typed[2]!)) {
    throw refuse('the API key would travel in cleartext')
  }
  const path = url.pathname.replace(/\/+$/, '')
  const tooMuch = /\/v1(\/.*)?$/.exec(path)
  if (tooMuch !== null) {
    const meant = `${url.origin}${path.slice(0, tooMuch.index)}`
    throw refuse(`${tooMuch[0]} is too much, since every route adds its own`, `Give ${meant} instead.`)
  }
  return `${url.origin}${path}`
}

const withoutUser = (text: string): string => text.replace(/^([a-z]+:[/\\]+)?.*@/is, '$1…@')

/** `0x7f.1` and `2130706433` parse to 127.0.0.1, so the host is checked as it was typed too. */
const isLocal = (parsed: string, typed: string): boolean =>
  localHosts.includes(parsed) && typed.replace(/:\d*$/, '').toLowerCase() === parsed
