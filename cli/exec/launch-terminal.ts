import { basename } from 'node:path/posix'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import { CliError } from '../core/errors.ts'
import { terminalSize } from './attachment.ts'
import type { Remote } from './remote.ts'

/**
 * Starts a command with a terminal and returns its id. A shell's prompt shows the session's name, unless PS1
 * is set. `findName` is called only for shells.
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
    // The allowlist may forbid PS1.
    if (!(error instanceof CliError) || error.details.variable !== 'PS1') throw error
    return await start(asked)
  }
}

/** True for shells that read the prompt from PS1. */
const isShell = ({ command }: ExecRequest): boolean =>
  Array.isArray(command) && ['sh', 'bash', 'dash', 'ash'].includes(basename(command[0] ?? ''))

/**
 * Returns a shell prompt that shows the session's name. Returns undefined if the name is too long or a shell
 * might expand it.
 */
export const promptFor = (name: string | null): string | undefined =>
  name !== null && /^[\w.,:@+=-][\w .,:@+=-]{0,39}$/.test(name) ? `${name}:$PWD\\$ ` : undefined

/**
 * Values of TERM that programs in common sandbox images support. Without a value from the client, the service
 * sets `xterm`, which has only eight colors.
 */
const supportedTypes = /^((xterm|screen|tmux)(-256color)?|linux|dumb)$/

export function terminalType({ TERM = '', COLORTERM = '' } = process.env): { TERM?: string } {
  if (supportedTypes.test(TERM)) return { TERM }
  return TERM.includes('256') || COLORTERM !== '' ? { TERM: 'xterm-256color' } : {}
}
