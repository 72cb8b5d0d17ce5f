/** Clients that send requests continuously and record failures. They retry only to resume a stream. */
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import type { Account } from '../support/account.ts'
import { bytesOf, readEvents } from '../support/events.ts'

/** Prints a numbered line every 0.2 s until the file exists. */
const counting = (stop: string) =>
  `i=0; until test -e ${stop}; do i=$((i+1)); echo line $i; sleep 0.2; done; echo end`
/** Grace period, which is longer than any expected interruption of a stream. */
const graceMs = 120_000

export interface Load {
  counts: Record<string, number>
  wrong: string[]
  /** Starts streamed commands and a terminal. The returned function ends them and checks the output. */
  follow(): Promise<() => Promise<void>>
  stop(): Promise<void>
}

/**
 * Runs commands in each sandbox and creates sandboxes, one after the other, with pauses of one and four seconds.
 * Requests that did not wait for each other would overload a slow machine, and fail for that reason alone.
 */
export function startLoad(account: Account, sandboxes: readonly string[], base: () => string): Load {
  const counts: Record<string, number> = {}
  const wrong: string[] = []
  const ending = new AbortController()
  let round = 0

  const note = async (what: string, work: () => Promise<unknown>) => {
    const at = Date.now()
    counts[what] = (counts[what] ?? 0) + 1
    try {
      await work()
    } catch (error) {
      const { message, cause } = error as Error
      const took = `${((Date.now() - at) / 1000).toFixed(1)} s`
      wrong.push(`${new Date(at).toISOString()} ${what}, ${took}: ${message}${cause ? ` (${cause})` : ''}`)
    }
  }
  const mustBe = (is: unknown, expected: unknown) => {
    const [a, b] = [JSON.stringify(is), JSON.stringify(expected)]
    if (a !== b) throw new Error(`got ${a?.slice(0, 500)}, expected ${b?.slice(0, 500)}`)
  }

  const repeat = async (pauseMs: number, work: () => Promise<void>) => {
    while (!ending.signal.aborted) {
      await work()
      await sleep(pauseMs, undefined, { signal: ending.signal }).catch(() => {})
    }
  }
  const exec = (id: string) =>
    note('exec', async () => {
      const word = `w${++round}`
      const { body } = await account.call('execCommand', {
        params: { id },
        body: { command: ['echo', word] },
      })
      mustBe([body.status, body.exit_code, body.stdout], ['exited', 0, `${word}\n`])
    })
  const create = async () => {
    let id: string | undefined
    await note('create', async () => {
      const { status, body } = await account.call('createSandbox', { body: {} })
      id = body.id
      // 202 means that the start is slow, as on a busy machine.
      mustBe([201, 202].includes(status), true)
    })
    if (id) await note('destroy', () => account.call('destroySandbox', { params: { id: id! } }))
  }

  async function followEvents(id: string, stop: string) {
    const { body } = await account.call('execCommand', {
      params: { id },
      body: { command: counting(stop), background: true, grace_ms: graceMs },
    })
    const params = { id, exec_id: body.id }
    let text = ''
    let last: string | undefined
    let tries = 0
    for (;;) {
      let reader: ReturnType<typeof readEvents> | undefined
      try {
        const headers = last === undefined ? {} : { 'last-event-id': last }
        reader = readEvents(await account.open('streamExec', { params, headers }))
        await reader.rest()
      } catch (error) {
        if (++tries > 60) throw error
      }
      const seen = reader?.seen ?? []
      text += bytesOf(seen, 'stdout')
      last = seen.at(-1)?.id ?? last
      if (seen.some(({ event }) => event === 'gap')) throw new Error('output is missing: a gap')
      const exit = seen.find(({ event }) => event === 'exit')
      if (exit) {
        mustBe([exit.data.status, exit.data.exit_code], ['exited', 0])
        mustBe(gapsIn(text), [])
        return
      }
      counts.resumed = (counts.resumed ?? 0) + 1
      await sleep(250)
    }
  }

  async function attach(id: string, stop: string) {
    const { body } = await account.call('execCommand', {
      params: { id },
      body: { command: ['sh', '-c', counting(stop)], tty: true, grace_ms: graceMs },
    })
    const url = `${base().replace('http', 'ws')}/v1/sandboxes/${id}/exec/${body.id}/attach`
    for (let tries = 0; tries < 60; tries++) {
      const socket = new WebSocket(url, { headers: { authorization: `Bearer ${account.key}` } })
      let text = ''
      let exit: { status: string } | undefined
      socket.on('message', (data: Buffer, isBinary) => {
        if (isBinary) text += data.subarray(1)
        else exit = JSON.parse(String(data))
      })
      socket.on('error', () => {})
      await new Promise((resolve) => socket.once('close', resolve))
      const lines = text.replaceAll('\r\n', '\n')
      if (exit) {
        mustBe(exit.status, 'exited')
        return mustBe(gapsIn(lines), [])
      }
      counts.attached = (counts.attached ?? 0) + 1
      await sleep(250)
    }
    throw new Error('the terminal could not be attached again')
  }

  const running = Promise.all([
    ...sandboxes.map((id) => repeat(1_000, () => exec(id))),
    repeat(4_000, create),
  ])
  return {
    counts,
    wrong,
    async follow() {
      const stop = `stop${++round}`
      const all = [
        ...sandboxes.map((id) => note('followed command', () => followEvents(id, stop))),
        note('terminal', () => attach(sandboxes[0]!, `${stop}-tty`)),
      ]
      return async () => {
        const touch = (id: string) =>
          note('touch', () =>
            account.call('createFile', { params: { id }, body: { path: stop, content: '' } }),
          )
        await Promise.all(sandboxes.map(touch))
        await note('touch', () =>
          account.call('createFile', {
            params: { id: sandboxes[0]! },
            body: { path: `${stop}-tty`, content: '' },
          }),
        )
        await Promise.all(all)
      }
    },
    async stop() {
      ending.abort()
      await running
    },
  }
}

/** Returns missing, repeated and changed lines. */
function gapsIn(text: string): string[] {
  const lines = text.split('\n')
  if (lines.pop() !== '' || lines.pop() !== 'end') return [`it ends with ${JSON.stringify(text.slice(-40))}`]
  return lines
    .flatMap((line, index) => (line === `line ${index + 1}` ? [] : [`${index + 1}: ${line}`]))
    .slice(0, 5)
}
