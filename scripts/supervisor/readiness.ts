import { setTimeout as sleep } from 'node:timers/promises'

/** After this long without readiness it is said what is missing, in milliseconds. */
const retry = 20_000

/** Resolves when /readyz says that all parts are there; tells once what keeps it waiting. */
export async function waitUntilReady(host: string, port: string, say: (line: string) => void) {
  const address = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host
  const url = `http://${address.includes(':') ? `[${address}]` : address}:${port}/readyz`
  const started = performance.now()
  for (let told = false; ; ) {
    const answer = await ask(url)
    if (answer.ok) return
    if (!told && performance.now() - started > retry) {
      say(`Not ready yet: ${answer.words}`)
      told = true
    }
    await sleep(50)
  }
}

async function ask(url: string): Promise<{ ok: boolean; words: string }> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(5000) })
    return { ok: response.ok, words: `${url} says ${response.status} ${await response.text()}` }
  } catch (error) {
    const { message, cause } = error as Error
    const why = cause instanceof Error ? cause.message : message
    return { ok: false, words: `${url} does not answer (${why})` }
  }
}
