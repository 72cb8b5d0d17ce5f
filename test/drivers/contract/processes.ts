/** The driver contract for processes: argv, streams and exit status. */
import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Driver, Pod } from '../../../workers/drivers/driver.ts'
import { eventually } from '../../support/eventually.ts'
import { collect, firstLine, run, shell } from '../processes.ts'
import type { Contract } from './parts.ts'

export function describeProcesses(contract: Contract): void {
  describe('processes', () => {
    let driver: Driver
    let pod: Pod
    beforeAll(() => {
      ;({ driver, pod } = contract.opened())
    })
    const whole = test.runIf(contract.isWhole)

    test.each([
      { script: 'exit 0', code: 0 },
      { script: 'exit 3', code: 3 },
      { script: 'kill -KILL $$', code: 137 },
      ...(contract.isWhole ? otherEnds : []),
    ])('a process that runs `$script` reports the exit code $code', async ({ script, code }) => {
      expect(await run(driver, pod, shell(script))).toMatchObject({ code })
    })

    test('a process receives its argv unchanged', async () => {
      const words = ['a b', "it's", '$HOME', '*', '', 'ü€', '-n', '"', '\\n', 'line\nline']
      const result = await run(driver, pod, ['/bin/sh', '-c', 'printf "[%s]" "$@"', 'sh', ...words])
      expect(result.stdout).toBe(words.map((word) => `[${word}]`).join(''))
    })

    test('a process can read and write 3 MB, and a half-close ends its input', async () => {
      const bytes = randomBytes(3_000_000)
      const process = await driver.start(pod, shell('cat; exit 5'))
      process.stdin.end(bytes)
      expect(sha256(await collect(process.stdout))).toBe(sha256(bytes))
      expect(await process.ended).toEqual({ kind: 'exited', code: 5 })
    })

    test('the stdin of a process stays open until the caller closes it', async () => {
      const process = await driver.start(
        pod,
        shell('read a; echo "1 $a"; read b; echo "2 $b"; cat; echo end; exit 5'),
      )
      process.stdin.write('first\n')
      expect(await firstLine(process.stdout)).toBe('1 first')
      process.stdin.write('second\n')
      expect(await firstLine(process.stdout)).toBe('2 second')
      process.stdin.end('rest ')
      expect(String(await collect(process.stdout))).toBe('rest end\n')
      expect(await process.ended).toEqual({ kind: 'exited', code: 5 })
    })

    test('delivers all output that was written before the exit status', async () => {
      for (let round = 0; round < (contract.isWhole ? 10 : 3); round++) {
        const process = await driver.start(pod, shell('head -c 300000 /dev/zero; exit 5'))
        const [output, end] = await Promise.all([collect(process.stdout), process.ended])
        expect(output.length).toBe(300_000)
        expect(end).toEqual({ kind: 'exited', code: 5 })
      }
    })

    whole('a process blocks on a reader that pauses', async () => {
      const size = 64 * 1024 * 1024
      // The process exits only after all output has been read. openExec documents why containerd requires this.
      const process = await driver.start(pod, shell(`echo $$; head -c ${size} /dev/zero; read -r _; exit 5`))
      const pid = await firstLine(process.stdout)
      process.stdout.pause()
      const before = memory()
      // Waits until no more data arrives.
      for (let last = -1; last !== process.stdout.readableLength; await sleep(1_000))
        last = process.stdout.readableLength
      expect(memory() - before).toBeLessThan(32 * 1024 * 1024)
      expect(await run(driver, pod, shell(`kill -0 ${pid}`))).toMatchObject({ code: 0 })
      let received = 0
      for await (const chunk of process.stdout) {
        received += chunk.length
        if (received === size) process.stdin.end()
      }
      expect(received).toBe(size)
      expect(await process.ended).toEqual({ kind: 'exited', code: 5 })
    })

    whole('a writer blocks on a process that does not read', async () => {
      const process = await driver.start(pod, shell('echo $$; exec sleep 600'))
      const pid = await firstLine(process.stdout)
      const chunk = Buffer.alloc(1024 * 1024)
      // Kernel buffers on the way to a cluster may hold more than a hundred chunks.
      const most = 1024 * chunk.length
      let accepted = 0
      const write = (): void => {
        process.stdin.write(chunk, (error) => {
          if (error) return
          accepted += chunk.length
          if (accepted < most) write()
        })
      }
      write()
      for (let last = -1; last !== accepted; await sleep(1_000)) last = accepted
      expect(accepted).toBeLessThan(most)
      await run(driver, pod, shell(`kill -KILL ${pid}`))
      // Some clusters never report the exit of a process with blocked input. `kubectl exec` also hangs.
      if (driver.kind === 'kubernetes') process.close()
      expect(await process.ended).toMatchObject(
        driver.kind === 'kubernetes' ? { kind: 'lost' } : { kind: 'exited', code: 137 },
      )
    })

    test('a process leads its own process group, which can be ended with a signal', async () => {
      const process = await driver.start(pod, shell('sleep 600 & echo "$$ $!"; wait'))
      const [leader, child] = (await firstLine(process.stdout)).split(' ')
      await run(driver, pod, shell(`kill -TERM -${leader}`))
      expect(await process.ended).toEqual({ kind: 'exited', code: 143 })
      await eventually(async () => {
        const state = await run(driver, pod, shell(`kill -0 ${child} 2>/dev/null`))
        return state.code !== 0
      }, 20_000)
    })

    test('a process leaves no zombies', async () => {
      await run(driver, pod, shell('for i in 1 2 3 4 5 6 7 8 9 10; do (sleep 0 >/dev/null 2>&1 &); done'))
      const zombies = shell("grep -l '^State:[[:space:]]*Z' /proc/[0-9]*/status 2>/dev/null | wc -l")
      await eventually(async () => (await run(driver, pod, zombies)).stdout.trim() === '0', 20_000)
    })

    test('a process is reported as lost exactly once if its connection is closed', async () => {
      const process = await driver.start(pod, shell('echo $$; exec sleep 600'))
      const pid = await firstLine(process.stdout)
      process.close()
      expect(await process.ended).toMatchObject({ kind: 'lost' })
      process.close()
      await run(driver, pod, shell(`kill -KILL ${pid} 2>/dev/null`))
    })

    test('a write to a process that has ended has no effect', async () => {
      const process = await driver.start(pod, ['true'])
      process.stdout.resume()
      await process.ended
      process.stdin.write('too late')
      process.stdin.end()
      await sleep(100)
    })
  })
}

const otherEnds = [
  { script: 'exit 255', code: 255 },
  { script: 'no-such-command-anywhere', code: 127 },
  { script: 'kill -TERM $$', code: 143 },
]

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** Returns this process's memory in bytes, including unread buffers. */
function memory(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
