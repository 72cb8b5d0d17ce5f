/** Runs the checks of a doctor one after the other, and reports each as soon as it is done. */
import { type CliError, describeError, exitCodes } from './errors.ts'

export interface Check {
  name: string
  ok: boolean
  /** What was found, or what went wrong. */
  detail: string
  ms: number
  next: string | null
}

export type Checks = ReturnType<typeof startChecks>

/** @param say gets each check's line, or lines */
export function startChecks(say: (text: string) => unknown) {
  const done: Check[] = []
  let failure: CliError | undefined
  return {
    done,
    /** Of the first that failed; 0 when none did. */
    exitCode: (): number => failure?.exitCode ?? exitCodes.done,
    /**
     * Runs a check: `look` returns what it found, and throws when it fails.
     * @returns whether it went well
     */
    async check(name: string, look: () => string | Promise<string>): Promise<boolean> {
      const started = performance.now()
      const tell = (ok: boolean, detail: string, next: string | null) => {
        const check = { name, ok, detail, ms: Math.round(performance.now() - started), next }
        done.push(check)
        say(describe(check))
        return ok
      }
      try {
        return tell(true, await look(), null)
      } catch (error) {
        const problem = describeError(error)
        // What made an earlier check fail is told once.
        if (done.some(({ ok, detail }) => !ok && detail === problem.message)) return false
        failure ??= problem
        return tell(false, problem.message, problem.hint ?? null)
      }
    },
  }
}

function describe({ name, ok, detail, ms, next }: Check): string {
  const [first, ...more] = detail.split('\n')
  const further = [...more, ...(next ?? '').split('\n')].filter((line) => line !== '')
  const lines = [`${ok ? 'ok  ' : 'FAIL'}  ${name.padEnd(10)}  ${first}  (${ms} ms)`]
  return [...lines, ...further.map((line) => `${' '.repeat(18)}${line}`)].join('\n')
}
