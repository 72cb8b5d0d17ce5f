import { basename } from 'node:path/posix'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import { CliError } from '../core/errors.ts'
import { terminalSize } from './attachment.ts'
import type { Remote } from './remote.ts'

/**
 * Starts a command with a terminal. A shell's prompt shows the session's name, unless PS1 is set.
 * @param findName called only for shells
 * @returns the command's id
 */
export async function launchTerminal(
  remote: Remote,
  request: ExecRequest,
  findName: () => Promise<string | null>,
): Promise<string> {
  const env: Record<string, string> = { ...terminalType(), ...request.env }
  const asked = { ...request, tty: true, ...terminalSize(), env }
  const start = async (asked: ExecRequest) => (await remote.launch(asked)).id
  const prompt = isShell(request) ? promptFor(await findName()) : undefined
  if (prompt === undefined || env.PS1 !== undefined) return await start(asked)
  try {
    return await start({ ...asked, env: { ...env, PS1: prompt } })
  } catch (error) {
    if (!(error instanceof CliError) || error.details.variable !== 'PS1') throw error
    // The allowlist may forbid PS1.
    return await start(asked)
  }
}

/** Shells that read the prompt from PS1. */
const shells = new Set(['sh', 'bash', 'dash', 'ash'])
const isShell = ({ command }: ExecRequest): boolean =>
  Array.isArray(command) && shells.has(basename(command[0] ?? ''))

/**
 * Returns a prompt with the session's name, or undefined if the name is too long or a shell might expand it.
 */
export const promptFor = (name: string | null): string | undefined =>
  name !== null && /^[\w.,:@+=-][\w .,:@+=-]{0,39}$/.test(name) ? `${name}:$PWD\\$ ` : undefined

/** Terminal types that images support. The default is `xterm`, with eight colors. */
const knownTypes = new Set([
  ...['xterm', 'xterm-256color', 'screen', 'screen-256color', 'tmux', 'tmux-256color', 'linux', 'dumb'],
])

export function terminalType({ TERM = '', COLORTERM = '' } = process.env): { TERM?: string } {
  if (knownTypes.has(TERM)) return { TERM }
  return TERM.includes('256') || COLORTERM !== '' ? { TERM: 'xterm-256color' } : {}
}
