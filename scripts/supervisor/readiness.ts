import { setTimeout as sleep } from 'node:timers/promises'

const reportAfterMs = 20_000

/** Waits until /readyz returns 200. If this takes longer than 20 s, reports the reason once. */
export async function waitUntilReady(host: string, port: string, report: (line: string) => void) {
  const address = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host
  const url = `http://${address.includes(':') ? `[${address}]` : address}:${port}/readyz`
  const started = performance.now()
  for (let isReported = false; ; ) {
    const result = await checkReadiness(url)
    if (result.ok) return
    if (!isReported && performance.now() - started > reportAfterMs) {
      report(`Sandlot is not ready yet: ${result.description}`)
      isReported = true
    }
    await sleep(50)
  }
}

async function checkReadiness(url: string): Promise<{ ok: boolean; description: string }> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(5000) })
    return { ok: response.ok, description: `${url} returns ${response.status} ${await response.text()}` }
  } catch (error) {
    const { message, cause } = error as Error
    const reason = cause instanceof Error ? cause.message : message
    return { ok: false, description: `${url} is not responding (${reason})` }
  }
}
