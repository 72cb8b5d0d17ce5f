/** Questions at a terminal, on stderr. Without a terminal nothing waits: the answer must be an option. */
import { CliError } from './errors.ts'
import { oneLine } from './printable.ts'

export type Ask = ReturnType<typeof createAsk>
/** Asks again for what it returns words about. */
type Check = (answer: string) => true | string

/**
 * Each question names, as `instead`, the option that gives the answer where it cannot be asked.
 * @param options whether a question may be asked at all, and whether every yes-or-no question is answered with yes
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
    /** Without echo, and without a key that would turn it on. */
    async hidden(message: string, instead: string, isRight: Check = () => true): Promise<string> {
      const { password } = await prompts(instead)
      const question = { message: oneLine(message), mask: false, toggleMask: false, validate: isRight }
      return untilAnswered((context) => password(question, context))
    },
    /**
     * Goes on only after a yes; no is the default.
     * @param otherwise says that nothing was done
     * @throws {CliError} with these words, after a no
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
