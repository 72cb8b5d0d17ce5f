import { type CliError, describeError, exitCodes } from './errors.ts'

export interface Check {
  name: string
  ok: boolean
  detail: string
  ms: number
  next: string | null
}

export type Checks = ReturnType<typeof startChecks>

export function startChecks(report: (text: string) => unknown) {
  const done: Check[] = []
  let failure: CliError | undefined
  return {
    done,
    exitCode: (): number => failure?.exitCode ?? exitCodes.done,
    /** Runs a check and reports its result. @param run returns a description, or throws if the check fails */
    async check(name: string, run: () => string | Promise<string>): Promise<boolean> {
      const started = performance.now()
      const finish = (ok: boolean, detail: string, next: string | null) => {
        const check = { name, ok, detail, ms: Math.round(performance.now() - started), next }
        done.push(check)
        report(describe(check))
        return ok
      }
      try {
        return finish(true, await run(), null)
      } catch (error) {
        const problem = describeError(error)
        // Failures with the same cause are reported only once.
        if (done.some(({ ok, detail }) => !ok && detail === problem.message)) return false
        failure ??= problem
        return finish(false, problem.message, problem.hint ?? null)
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
