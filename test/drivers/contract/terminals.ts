import { beforeAll, describe, expect, test } from 'vitest'
import type { Driver, Pod } from '../../../workers/drivers/driver.ts'
import { eventually } from '../../support/eventually.ts'
import { collect, readScreen, run, shell } from '../processes.ts'
import type { Contract } from './parts.ts'

export function describeTerminals(contract: Contract): void {
  describe('terminals', () => {
    let driver: Driver
    let pod: Pod
    beforeAll(() => {
      ;({ driver, pod } = contract.opened())
    })

    const size = { rows: 33, columns: 99 }
    const startOn = async (script: string) => {
      const process = await driver.start(pod, shell(script), { tty: size })
      process.stdout.setEncoding('utf8')
      const screen = readScreen(process.stdout)
      return { process, screen }
    }

    test('a terminal of the requested size is connected to stdin, stdout and stderr of its process', async () => {
      const { process, screen } = await startOn('test -t 0 && test -t 1 && test -t 2 && stty size; exit 4')
      expect(await process.ended).toEqual({ kind: 'exited', code: 4 })
      expect(await screen.all).toBe('33 99\r\n')
      expect(String(await collect(process.stderr))).toBe('')
    })

    test.each([
      { script: 'exit 0', code: 0 },
      { script: 'exit 7', code: 7 },
      { script: 'kill -KILL $$', code: 137 },
      ...(contract.isWhole ? [{ script: 'exit 255', code: 255 }] : []),
    ])('a terminal process that runs `$script` reports the exit code $code', async ({ script, code }) => {
      const { process } = await startOn(script)
      expect(await process.ended).toEqual({ kind: 'exited', code })
    })

    test.runIf(contract.isWhole)('a broken terminal connection never causes a wrong exit code', async () => {
      // In a cluster, unread input breaks connections, and the exit code may then be 0.
      const ends = await Promise.all(
        Array.from({ length: 20 }, async () => {
          const { process, screen } = await startOn('echo ready; read -r _; head -c 200000 /dev/zero; exit 7')
          await screen.shows('ready')
          process.stdin.write('\r')
          const typing = setInterval(() => process.stdin.write('abc'), 2)
          const end = await process.ended
          clearInterval(typing)
          return end.kind === 'lost' ? 'lost' : end.code
        }),
      )
      expect(ends).toContain(7)
      expect(ends.filter((end) => end !== 7 && end !== 'lost')).toEqual([])
    })

    test('typed input, including UTF-8 characters, is echoed once and reaches the process', async () => {
      const { process, screen } = await startOn('echo ready; read line; echo "got $line"')
      await screen.shows('ready\r\n')
      process.stdin.write('grüße €\r')
      expect(await process.ended).toEqual({ kind: 'exited', code: 0 })
      expect(await screen.all).toBe('ready\r\ngrüße €\r\ngot grüße €\r\n')
    })

    test.each([
      { what: 'ends a process', script: 'echo ready; exec sleep 600', code: 130 },
      {
        what: 'is passed to a process',
        script: "trap 'exit 0' INT; echo ready; while :; do sleep 1; done",
        code: 0,
      },
    ])('Ctrl-C $what, which exits with $code', async ({ script, code }) => {
      const { process, screen } = await startOn(script)
      await screen.shows('ready\r\n')
      process.stdin.write('\x03')
      expect(await process.ended).toEqual({ kind: 'exited', code })
    })

    test('Ctrl-Z stops a job of an interactive shell, and fg resumes the job', async () => {
      const { process, screen } = await startOn("exec env PS1='% ' sh -i")
      await screen.shows('% ')
      process.stdin.write('sh -c \'echo a""job; read line; echo "got $line"\'\r')
      await screen.shows('ajob\r\n')
      process.stdin.write('\x1a')
      await screen.shows('Stopped')
      process.stdin.write('fg\r')
      process.stdin.write('word\r')
      await screen.shows('got word\r\n')
      process.stdin.write('exit 0\r')
      expect(await process.ended).toEqual({ kind: 'exited', code: 0 })
    })

    test('a process is notified when its terminal is resized, and the terminal keeps the last size', async () => {
      const { process, screen } = await startOn(
        "trap 'stty size' WINCH; echo ready; while :; do read line && break; done; stty size",
      )
      await screen.shows('ready\r\n')
      await process.resize!({ rows: 40, columns: 120 })
      await screen.shows('40 120\r\n')
      await process.resize!({ rows: 50, columns: 130 })
      await process.resize!({ rows: 60, columns: 140 })
      await screen.shows('60 140\r\n')
      process.stdin.write('\r')
      expect(await process.ended).toEqual({ kind: 'exited', code: 0 })
      expect((await screen.all).endsWith('60 140\r\n')).toBe(true)
      await process.resize!(size)
    })

    test("a terminal process leads its own session, and the session's other processes end with it", async () => {
      const { process, screen } = await startOn('sleep 600 & echo "$$ $!"; wait')
      const [leader, child] = (await screen.shows('\r\n')).trim().split(' ')
      await run(driver, pod, shell(`kill -KILL ${leader}`))
      expect(await process.ended).toEqual({ kind: 'exited', code: 137 })
      await eventually(async () => {
        return (await run(driver, pod, shell(`kill -0 ${child} 2>/dev/null`))).code !== 0
      }, 20_000)
    })

    test('a terminal delivers all of a long output, in order, before the exit status', async () => {
      const { process, screen } = await startOn(
        'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo "line $i"; done',
      )
      expect(await process.ended).toEqual({ kind: 'exited', code: 0 })
      const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index + 1}\r\n`)
      expect((await screen.all) === lines.join('')).toBe(true)
    })

    test('a terminal process whose connection is closed is reported as lost', async () => {
      const { process, screen } = await startOn('echo "$$"; sleep 600')
      const leader = (await screen.shows('\r\n')).trim()
      process.close()
      expect(await process.ended).toMatchObject({ kind: 'lost' })
      await run(driver, pod, shell(`kill -KILL ${leader} 2>/dev/null`))
    })

    test('a process without a terminal has no terminal size', async () => {
      const process = await driver.start(pod, shell('test -t 0 || test -t 1 || exit 9'))
      expect(process.resize).toBeUndefined()
      expect(await process.ended).toEqual({ kind: 'exited', code: 9 })
    })
  })
}
