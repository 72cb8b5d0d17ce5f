/** Questions at a terminal, asked on stderr. Off a terminal nothing waits: the answer must be an option. */
import { CliError } from './errors.ts'

export const canAsk = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true

/** @param instead the option that gives the answer off a terminal */
export async function askText(message: string, instead: string): Promise<string> {
  const { input } = await prompts(instead)
  return ask((context) => input({ message, required: true }, context))
}

/** Without echo, and without a key that would turn it on. */
export async function askHidden(message: string, instead: string): Promise<string> {
  const { password } = await prompts(instead)
  return ask((context) => password({ message, mask: false, toggleMask: false }, context))
}

/** No by default. */
export async function askWhether(message: string, instead: string): Promise<boolean> {
  const { confirm } = await prompts(instead)
  return ask((context) => confirm({ message, default: false }, context))
}

async function prompts(instead: string) {
  if (canAsk()) return import('./prompts.ts')
  throw new CliError('usage', `There is no terminal to ask at: pass ${instead}.`)
}

interface Context {
  output: NodeJS.WritableStream
  signal: AbortSignal
}

async function ask<T>(prompt: (context: Context) => Promise<T>): Promise<T> {
  // Ctrl-D closes the terminal's input and leaves the question pending: nothing is left to wait for.
  const ended = new AbortController()
  const end = () => ended.abort()
  process.once('beforeExit', end)
  try {
    return await prompt({ output: process.stderr, signal: ended.signal })
  } catch (error) {
    const { name } = error as Error
    if (name !== 'ExitPromptError' && name !== 'AbortPromptError') throw error
    throw new CliError('interrupted', 'Interrupted.')
  } finally {
    process.off('beforeExit', end)
  }
}
