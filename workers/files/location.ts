/**
 * Resolves the paths in requests and formats the paths in responses. Paths are handled as bytes, because JSON
 * strings cannot represent every Linux file name.
 */
import { posix } from 'node:path'
import type { FileName } from '../../shared/rpc/calls.ts'
import { absolute, type Path } from '../shell/script.ts'

export interface Location {
  word: Path
  shown: DisplayPath
}

/** A path as a string, and also in base64 if its bytes are not valid UTF-8. */
export interface DisplayPath {
  path: string
  path_base64?: string
}

export function locate(name: FileName): Location {
  // As latin1, each character is one byte, and path separators are ASCII.
  const whole = Buffer.from(absolute(bytesOf(name).toString('latin1')), 'latin1')
  return { word: { path: whole }, shown: show(whole) }
}

export function show(bytes: Buffer): DisplayPath {
  const { text, base64 } = readName(bytes)
  return base64 === undefined ? { path: text } : { path: text, path_base64: base64 }
}

/**
 * Decodes a name. In a name that is not valid UTF-8, invalid bytes become U+FFFD in `text`, and the name is
 * also returned in base64.
 */
export function readName(bytes: Buffer): { text: string; base64?: string } {
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes) ? { text } : { text, base64: bytes.toString('base64') }
}

/**
 * Returns the base64 forms of the names that are not valid UTF-8, by index, or undefined if there are none.
 */
export function oddNames(list: (string | undefined)[]): Record<string, string> | undefined {
  const odd = list.flatMap((base64, index) => (base64 === undefined ? [] : [[index, base64] as const]))
  return odd.length === 0 ? undefined : Object.fromEntries(odd)
}

/** Returns the prefix for names under the requested path. The prefix is empty for the workspace. */
export function prefixOf(name: FileName): Buffer {
  const plain = posix.normalize(bytesOf(name).toString('latin1')).replace(/(?<=.)\/$/, '')
  if (plain === '.') return Buffer.alloc(0)
  return Buffer.from(plain === '/' ? plain : `${plain}/`, 'latin1')
}

const bytesOf = ({ path = '.', path_base64 }: FileName): Buffer =>
  path_base64 === undefined ? Buffer.from(path) : Buffer.from(path_base64, 'base64')
