/** Asks questions on stderr. Without a terminal they fail and name the option to use instead. */
import { CliError } from './errors.ts'
import { oneLine } from './printable.ts'

export type Ask = ReturnType<typeof createAsk>
/** Returns true, or a message to ask again. */
type Check = (answer: string) => true | string

/**
 * Each question names, as `instead`, the option that answers it.
 * @param options whether to ask at all, and whether to answer yes-or-no questions with yes
 */
export function createAsk({ input = true, yes = false }: { input?: boolean; yes?: boolean }) {
  const isPossible = () => input && process.stdin.isTTY === true && process.stderr.isTTY === true
  async function prompts(instead: string) {
    if (isPossible()) return import('./prompts.ts')
    const why = input ? 'There is no terminal to ask at' : 'Nothing is asked with --no-input'
    throw new CliError('usage', `${why}: pass ${instead}.`)
  }
  return {
    isPossible,
    async text(message: string, instead: string, isRight: Check = () => true): Promise<string> {
      const { input } = await prompts(instead)
      return untilAnswered((context) =>
        input({ message: oneLine(message), required: true, validate: isRight }, context),
      )
    },
    /** Never echoes, and has no key that enables echo. */
    async hidden(message: string, instead: string, isRight: Check = () => true): Promise<string> {
      const { password } = await prompts(instead)
      const question = { message: oneLine(message), mask: false, toggleMask: false, validate: isRight }
      return untilAnswered((context) => password(question, context))
    },
    /**
     * @param otherwise message after a no
     * @throws {CliError} unless the answer is yes
     */
    async confirm(message: string, otherwise: string): Promise<void> {
      if (yes) return
      const { confirm } = await prompts('--yes')
      const isYes = await untilAnswered((context) =>
        confirm({ message: oneLine(message), default: false }, context),
      )
      if (!isYes) throw new CliError('failed', otherwise)
    },
  }
}

interface PromptContext {
  output: NodeJS.WritableStream
  signal: AbortSignal
}

async function untilAnswered<T>(prompt: (context: PromptContext) => Promise<T>): Promise<T> {
  // Ctrl-D closes stdin and leaves the prompt pending; without this the process would exit silently.
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
