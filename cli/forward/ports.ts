import { shellWord } from '../../shared/contract/shell-words.ts'
import { CliError } from '../core/errors.ts'

export interface ForwardedPort {
  /** 0 selects any free port. */
  local: number
  remote: number
}

/** Parses `3000`, `8080:3000` or `:3000`. @throws {CliError} `usage` for any other string */
export function readPort(text: string, _: number, all: string[]): ForwardedPort {
  const [, local, remote] = /^(?:(\d*):)?(\d+)$/.exec(text) ?? []
  const ports = { local: Number(local ?? remote), remote: Number(remote) }
  if (remote !== undefined && ports.remote >= 1 && ports.remote <= maxPort && ports.local <= maxPort)
    return ports
  throw new CliError(
    'usage',
    `${JSON.stringify(text)} is not PORT or LOCAL:PORT, with ports from 1 to ${maxPort}.`,
    { hint: hintFor(text, all) },
  )
}

/** Suggests --session if the user typed a session name before the port, as with kubectl. */
function hintFor(text: string, all: string[]): string {
  const port = all.find((each) => /^(?:\d*:)?\d+$/.test(each))
  if (port !== undefined && !/[\d:]/.test(text[0]!))
    return `\`sandlot forward --session ${shellWord(text)} ${port}\` forwards to a port of the session ${shellWord(text)}.`
  return '`sandlot forward 8080:3000` forwards local port 8080 to port 3000 of the session.'
}

const maxPort = 65_535
