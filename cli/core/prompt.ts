/** Prompts on stderr. Without a terminal, fails with an error that names the option to use instead. */
import { CliError } from './errors.ts'
import { oneLine } from './printable.ts'

export type Ask = ReturnType<typeof createAsk>
/** Returns true, or the message to show before the prompt is repeated. */
type Check = (answer: string) => true | string

/** Returns prompt functions. Their `instead` parameter names the option that makes the prompt unnecessary. */
export function createAsk({ input = true, yes = false }: { input?: boolean; yes?: boolean }) {
  const isPossible = () => input && process.stdin.isTTY === true && process.stderr.isTTY === true
  async function prompts(instead: string) {
    if (isPossible()) return import('./prompts.ts')
    const reason = input ? 'Prompts need a terminal' : '--no-input disables prompts'
    throw new CliError('usage', `${reason}. Pass ${instead}.`)
  }
  return {
    isPossible,
    async text(message: string, instead: string, isRight: Check = () => true): Promise<string> {
      const { input } = await prompts(instead)
      return untilAnswered((context) =>
        input({ message: oneLine(message), required: true, validate: isRight }, context),
      )
    },
    /** Prompts without echo. `toggleMask` is off, because Ctrl-T would otherwise reveal the answer. */
    async hidden(message: string, instead: string, isRight: Check = () => true): Promise<string> {
      const { password } = await prompts(instead)
      const question = { message: oneLine(message), mask: false, toggleMask: false, validate: isRight }
      return untilAnswered((context) => password(question, context))
    },
    /**
     * Asks a yes-or-no question.
     * @throws {CliError} with the message `otherwise`, unless the answer is yes
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

type Prompt<T> = (context: { output: NodeJS.WritableStream; signal: AbortSignal }) => Promise<T>

async function untilAnswered<T>(prompt: Prompt<T>): Promise<T> {
  // Ctrl-D closes stdin. The prompt would never settle, and the process would exit silently.
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
