/**
 * What workers/drivers/driver.ts promises, held against real sandboxes: both drivers run this
 * same suite. The image may be a busybox: only POSIX sh and small tools are used inside.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { ulid } from 'ulid'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { podName } from '../../shared/data/ids.ts'
import { type Driver, DriverUnavailable, type Pod, PodGone } from '../../workers/drivers/driver.ts'
import { collect, eventually, firstLine, readScreen, run, shell } from './processes.ts'

export interface OpenDriver {
  driver: Driver
  image: string
  close(): Promise<void>
}

/** @param open opens one more driver of the same installation, as one more worker would */
export function describeDriver(name: string, open: () => Promise<OpenDriver>): void {
  describe(`the ${name} driver`, { timeout: 120_000 }, () => {
    const hostSecret = `host-${randomUUID()}`
    let opened: OpenDriver
    let driver: Driver
    /** One sandbox that most tests share. */
    let pod: Pod

    const request = (sandboxId: string, deadlineSeconds = 600) => ({
      ...ofSandbox(sandboxId),
      image: opened.image,
      deadlineSeconds,
    })
    async function createReady(sandboxId = newSandboxId(), deadlineSeconds?: number): Promise<Pod> {
      const created = await driver.create(request(sandboxId, deadlineSeconds))
      await driver.ready(created, AbortSignal.timeout(60_000))
      return created
    }

    beforeAll(async () => {
      process.env.SANDLOT_CONTRACT_PROBE = hostSecret
      opened = await open()
      driver = opened.driver
      pod = await createReady()
    }, 120_000)

    afterAll(async () => {
      delete process.env.SANDLOT_CONTRACT_PROBE
      if (pod) await driver.delete(pod)
      await opened?.close()
    }, 120_000)

    describe('pods', () => {
      test('answers a ping', async () => {
        await driver.ping()
      })

      test('names the pod after its sandbox', () => {
        expect(pod.name).toBe(podName(pod.sandboxId!))
      })

      test('finds a pod again that exists already', async () => {
        const again = await driver.create(request(pod.sandboxId!))
        expect(again).toEqual(pod)
      })

      test('makes one pod out of several creates at once', async () => {
        const sandboxId = newSandboxId()
        const pods = await Promise.all(Array.from({ length: 5 }, () => driver.create(request(sandboxId))))
        await driver.delete(pods[0]!)
        expect(new Set(pods.map((made) => made.uid)).size).toBe(1)
      })

      test('lists a pod with its sandbox, alive', async () => {
        const listed = (await driver.list()).filter((each) => each.name === pod.name)
        expect(listed).toEqual([{ ...pod, death: undefined }])
      })

      test('a second driver of the installation sees and reaches the pod', async () => {
        const second = await open()
        try {
          expect((await second.driver.list()).map((each) => each.uid)).toContain(pod.uid)
          expect(await run(second.driver, pod, shell('echo hello'))).toMatchObject({ stdout: 'hello\n' })
        } finally {
          await second.close()
        }
      })

      test('deletes a pod with all that runs in it, again and again', async () => {
        const doomed = await createReady()
        const process = await driver.start(doomed, shell("trap '' TERM HUP INT; while :; do sleep 1; done"))
        await driver.delete(doomed)
        expect(await names()).not.toContain(doomed.name)
        expect((await process.ended).kind).toBeOneOf(['exited', 'lost'])
        await driver.delete(doomed)
        await driver.delete({ name: doomed.name })
      })

      test('a trial of the caller’s own is repeated until the pod can be used', async () => {
        const made = await driver.create(request(newSandboxId()))
        let tries = 0
        const trial = async () => {
          tries += 1
          const result = await run(driver, made, shell('echo tried')).catch((error) => {
            throw new DriverUnavailable('not yet', { cause: error })
          })
          if (tries === 1) throw new DriverUnavailable('once more')
          return result
        }
        await driver.ready(made, AbortSignal.timeout(60_000), trial)
        await driver.delete(made)
        expect(tries).toBeGreaterThan(1)
      })

      test('a trial that never ends delays nobody beyond the time that was given', async () => {
        const stop = new AbortController()
        const ready = driver.ready(pod, stop.signal, () => new Promise(() => {}))
        stop.abort(new Error('called off'))
        await expect(ready).rejects.toThrow('called off')
      })

      test('deletes nothing when the uid is that of another pod', async () => {
        await driver.delete({ name: pod.name, uid: randomUUID() })
        expect(await run(driver, pod, shell('echo alive'))).toMatchObject({ stdout: 'alive\n' })
      })

      test('a sandbox created again after its deletion is another pod', async () => {
        const first = await createReady()
        await run(driver, first, shell('echo old > /workspace/left'))
        await driver.delete(first)
        const second = await createReady(first.sandboxId!)
        const left = await run(driver, second, shell('cat /workspace/left'))
        await driver.delete(first)
        expect(await names()).toContain(second.name)
        await driver.delete(second)
        expect(second.uid).not.toBe(first.uid)
        expect(left.code).not.toBe(0)
      })

      test('refuses to start in a pod that was deleted or never was', async () => {
        const gone = await createReady()
        await driver.delete(gone)
        await expect(driver.start(gone, ['true'])).rejects.toThrow(PodGone)
        await expect(driver.start({ name: podName(newSandboxId()) }, ['true'])).rejects.toThrow(PodGone)
      })

      test('a pod ends by itself at its deadline, with the driver that made it closed', async () => {
        const other = await open()
        const doomed = await other.driver.create(request(newSandboxId(), 4))
        await other.driver.ready(doomed, AbortSignal.timeout(60_000))
        await other.close()
        const isDead = async () => {
          const found = (await driver.list()).find((each) => each.name === doomed.name)
          return !found || found.death !== undefined
        }
        expect(await isDead()).toBe(false)
        await eventually(isDead, 60_000)
        const found = (await driver.list()).find((each) => each.name === doomed.name)
        if (found) expect(found.death?.reason).toBe('expired')
        await expect(driver.start(doomed, ['true'])).rejects.toThrow(PodGone)
        await driver.delete(doomed)
        expect(await names()).not.toContain(doomed.name)
      })

      const names = async () => (await driver.list()).map((each) => each.name)

      describe('for nobody', () => {
        const make = async (deadlineSeconds = 600) => {
          const made = await driver.create({ ...ofNobody(), image: opened.image, deadlineSeconds })
          await driver.ready(made, AbortSignal.timeout(60_000))
          return made
        }
        const find = async ({ uid }: Pod) => (await driver.list()).find((each) => each.uid === uid)

        test('are told whose they are, again and again, and keep what runs in them', async () => {
          const warm = await make()
          expect(await find(warm)).toEqual({ ...warm, sandboxId: undefined, death: undefined })
          const waiting = await driver.start(warm, shell('read -r word; echo "$word"'))
          const sandboxId = newSandboxId()
          await driver.assign(warm, { sandboxId, deadlineSeconds: 300 })
          await driver.assign(warm, { sandboxId, deadlineSeconds: 300 })
          expect(await find(warm)).toEqual({ ...warm, sandboxId, death: undefined })
          waiting.stdin.end('still here\n')
          expect(String(await collect(waiting.stdout))).toBe('still here\n')
          const another = { name: warm.name, uid: randomUUID() }
          await expect(driver.assign(another, { sandboxId, deadlineSeconds: 1 })).rejects.toThrow(PodGone)
          expect(await find(warm)).toMatchObject({ sandboxId })
          await driver.delete(warm)
          await expect(driver.assign(warm, { sandboxId, deadlineSeconds: 1 })).rejects.toThrow(PodGone)
        })

        test('end by themselves at the deadline that they are told, with every driver closed', async () => {
          const other = await open()
          const warm = await make()
          await other.driver.assign(warm, { sandboxId: newSandboxId(), deadlineSeconds: 4 })
          await other.close()
          await eventually(async () => !(await find(warm)) || (await find(warm))?.death !== undefined, 60_000)
          const found = await find(warm)
          if (found) expect(found.death?.reason).toBe('expired')
          await expect(
            driver.assign(warm, { sandboxId: newSandboxId(), deadlineSeconds: 2 }),
          ).rejects.toThrow(PodGone)
          await driver.delete(warm)
        })

        test('are alike when what they are made of is', () => {
          const print = (deadlineSeconds: number) =>
            driver.fingerprint({ image: opened.image, deadlineSeconds })
          expect(print(600)).toBe(print(600))
          expect(print(600)).not.toBe(print(601))
        })
      })
    })

    describe('processes', () => {
      test.each([
        { script: 'exit 0', code: 0 },
        { script: 'exit 3', code: 3 },
        { script: 'exit 255', code: 255 },
        { script: 'no-such-command-anywhere', code: 127 },
        { script: 'kill -TERM $$', code: 143 },
        { script: 'kill -KILL $$', code: 137 },
      ])('reports $code for `$script`', async ({ script, code }) => {
        expect(await run(driver, pod, shell(script))).toMatchObject({ code })
      })

      test('keeps stdout and stderr apart', async () => {
        const result = await run(driver, pod, shell('printf out; printf err >&2; printf put; exit 7'))
        expect(result).toEqual({ stdout: 'output', stderr: 'err', code: 7 })
      })

      test('passes its argv as it is', async () => {
        const words = ['a b', "it's", '$HOME', '*', '', 'ü€', '-n', '"', '\\n', 'line\nline']
        const result = await run(driver, pod, ['/bin/sh', '-c', 'printf "[%s]" "$@"', 'sh', ...words])
        expect(result.stdout).toBe(words.map((word) => `[${word}]`).join(''))
      })

      test('carries all 256 byte values in and out', async () => {
        const bytes = Buffer.from(Array.from({ length: 256 }, (_, value) => value))
        const process = await driver.start(pod, ['cat'])
        process.stdin.end(bytes)
        expect((await collect(process.stdout)).equals(bytes)).toBe(true)
        expect(await process.ended).toEqual({ kind: 'exited', code: 0 })
      })

      test('carries 3 MB in and out, and a half-close ends the input', async () => {
        const bytes = randomBytes(3_000_000)
        const process = await driver.start(pod, ['cat'])
        process.stdin.end(bytes)
        expect(sha256(await collect(process.stdout))).toBe(sha256(bytes))
        expect(await process.ended).toEqual({ kind: 'exited', code: 0 })
      })

      test('the input stays open until it is closed', async () => {
        const process = await driver.start(
          pod,
          shell('read a; echo "1 $a"; read b; echo "2 $b"; cat; echo end'),
        )
        process.stdin.write('first\n')
        expect(await firstLine(process.stdout)).toBe('1 first')
        process.stdin.write('second\n')
        expect(await firstLine(process.stdout)).toBe('2 second')
        process.stdin.end('rest ')
        expect(String(await collect(process.stdout))).toBe('rest end\n')
        expect(await process.ended).toEqual({ kind: 'exited', code: 0 })
      })

      test('output that is all there before the end is announced is all delivered', async () => {
        for (let round = 0; round < 10; round++) {
          const process = await driver.start(pod, shell('head -c 300000 /dev/zero; exit 5'))
          const [output, end] = await Promise.all([collect(process.stdout), process.ended])
          expect(output.length).toBe(300_000)
          expect(end).toEqual({ kind: 'exited', code: 5 })
        }
      })

      test('a reader that pauses makes the process wait', async () => {
        const size = 64 * 1024 * 1024
        // Ends only once all of it was read: see openExec for what containerd may do otherwise.
        const process = await driver.start(
          pod,
          shell(`echo $$; head -c ${size} /dev/zero; read -r _; exit 5`),
        )
        const pid = await firstLine(process.stdout)
        process.stdout.pause()
        const before = memory()
        await sleep(2_000)
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

      test('a process that does not read makes the writer wait', async () => {
        const process = await driver.start(pod, shell('echo $$; exec sleep 600'))
        const pid = await firstLine(process.stdout)
        const chunk = Buffer.alloc(1024 * 1024)
        let accepted = 0
        const write = (): void => {
          process.stdin.write(chunk, (error) => {
            if (error) return
            accepted += chunk.length
            if (accepted < 64 * chunk.length) write()
          })
        }
        write()
        await sleep(2_000)
        expect(accepted).toBeLessThan(48 * chunk.length)
        await run(driver, pod, shell(`kill -KILL ${pid}`))
        // Not every cluster tells the end of a process whose input is stuck: `kubectl exec` hangs alike.
        if (driver.kind === 'kubernetes') process.close()
        expect(await process.ended).toMatchObject(
          driver.kind === 'kubernetes' ? { kind: 'lost' } : { kind: 'exited', code: 137 },
        )
      })

      test('leads its own process group: a signal to the group ends all of it', async () => {
        const process = await driver.start(pod, shell('sleep 600 & echo "$$ $!"; wait'))
        const [leader, child] = (await firstLine(process.stdout)).split(' ')
        await run(driver, pod, shell(`kill -TERM -${leader}`))
        expect(await process.ended).toEqual({ kind: 'exited', code: 143 })
        await eventually(async () => {
          const state = await run(driver, pod, shell(`kill -0 ${child} 2>/dev/null`))
          return state.code !== 0
        }, 20_000)
      })

      test('what one command leaves running, the next one sees', async () => {
        const left = await run(driver, pod, shell('sleep 600 >/dev/null 2>&1 & echo $!'))
        const pid = left.stdout.trim()
        expect(await run(driver, pod, shell(`kill -0 ${pid} && kill -KILL ${pid}`))).toMatchObject({
          code: 0,
        })
      })

      test('no zombies pile up', async () => {
        await run(driver, pod, shell('for i in 1 2 3 4 5 6 7 8 9 10; do (sleep 0 >/dev/null 2>&1 &); done'))
        const zombies = shell("grep -l '^State:[[:space:]]*Z' /proc/[0-9]*/status 2>/dev/null | wc -l")
        await eventually(async () => (await run(driver, pod, zombies)).stdout.trim() === '0', 20_000)
      })

      test('twenty processes at once each get their own answer', async () => {
        const indexes = Array.from({ length: 20 }, (_, index) => index)
        const results = await Promise.all(
          indexes.map(async (index) => {
            // Ends only once it was heard: see openExec for what containerd may do otherwise.
            const process = await driver.start(pod, shell(`echo ${index}; read -r _; exit ${index}`))
            const line = await firstLine(process.stdout)
            process.stdin.end()
            return [line, await process.ended]
          }),
        )
        expect(results).toEqual(indexes.map((index) => [`${index}`, { kind: 'exited', code: index }]))
      })

      test('a connection that is closed settles once, as lost', async () => {
        const process = await driver.start(pod, shell('echo $$; exec sleep 600'))
        const pid = await firstLine(process.stdout)
        process.close()
        expect(await process.ended).toMatchObject({ kind: 'lost' })
        process.close()
        await run(driver, pod, shell(`kill -KILL ${pid} 2>/dev/null`))
      })

      test('a write to a process that has ended hurts nobody', async () => {
        const process = await driver.start(pod, ['true'])
        process.stdout.resume()
        await process.ended
        process.stdin.write('too late')
        process.stdin.end()
        await sleep(100)
      })
    })

    describe('terminals', () => {
      const size = { rows: 33, columns: 99 }
      const startOn = async (script: string) => {
        const process = await driver.start(pod, shell(script), { tty: size })
        process.stdout.setEncoding('utf8')
        const screen = readScreen(process.stdout)
        return { process, screen }
      }

      test('the process finds a terminal on all three streams, of the size asked for', async () => {
        const { process, screen } = await startOn('test -t 0 && test -t 1 && test -t 2 && stty size; exit 4')
        expect(await process.ended).toEqual({ kind: 'exited', code: 4 })
        expect(await screen.all).toBe('33 99\r\n')
        expect(String(await collect(process.stderr))).toBe('')
      })

      test.each([
        { script: 'exit 0', code: 0 },
        { script: 'exit 255', code: 255 },
        { script: 'kill -KILL $$', code: 137 },
      ])('reports $code for `$script` on a terminal', async ({ script, code }) => {
        const { process } = await startOn(script)
        expect(await process.ended).toEqual({ kind: 'exited', code })
      })

      test('what is typed is echoed, once, and reaches the process', async () => {
        const { process, screen } = await startOn('echo ready; read line; echo "got $line"')
        await screen.shows('ready\r\n')
        process.stdin.write('hello\r')
        expect(await process.ended).toEqual({ kind: 'exited', code: 0 })
        expect(await screen.all).toBe('ready\r\nhello\r\ngot hello\r\n')
      })

      test('Ctrl-C interrupts what runs in the foreground, and the shell lives on', async () => {
        const { process, screen } = await startOn(
          `trap : INT; sh -c 'echo ready; exec sleep 600'; echo "sleep: $?"; read line; echo "then $line"`,
        )
        await screen.shows('ready\r\n')
        process.stdin.write('\x03')
        await screen.shows('sleep: 130\r\n')
        process.stdin.write('on\r')
        await screen.shows('then on\r\n')
        expect(await process.ended).toEqual({ kind: 'exited', code: 0 })
      })

      test('a new size is told to the process, and it is the last one that stays', async () => {
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

      test('leads a session of its own on it, and what runs there ends with it', async () => {
        const { process, screen } = await startOn('sleep 600 & echo "$$ $!"; wait')
        const [leader, child] = (await screen.shows('\r\n')).trim().split(' ')
        await run(driver, pod, shell(`kill -KILL ${leader}`))
        expect(await process.ended).toEqual({ kind: 'exited', code: 137 })
        await eventually(async () => {
          return (await run(driver, pod, shell(`kill -0 ${child} 2>/dev/null`))).code !== 0
        }, 20_000)
      })

      test('all of a long output comes, in its order, before the end is told', async () => {
        const { process, screen } = await startOn(
          'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo "line $i"; done',
        )
        expect(await process.ended).toEqual({ kind: 'exited', code: 0 })
        const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index + 1}\r\n`)
        expect((await screen.all) === lines.join('')).toBe(true)
      })

      test('bytes of an UTF-8 character go through as they are, both ways', async () => {
        const { process, screen } = await startOn('echo ready; read line; printf %s "$line"')
        await screen.shows('ready')
        process.stdin.write('grüße €\r')
        await process.ended
        expect((await screen.all).endsWith('grüße €\r\ngrüße €')).toBe(true)
      })

      test('a terminal whose connection is closed settles as lost', async () => {
        const { process, screen } = await startOn('echo "$$"; sleep 600')
        const leader = (await screen.shows('\r\n')).trim()
        process.close()
        expect(await process.ended).toMatchObject({ kind: 'lost' })
        await run(driver, pod, shell(`kill -KILL ${leader} 2>/dev/null`))
      })

      test('a process without a terminal has no size', async () => {
        const process = await driver.start(pod, shell('test -t 0 || test -t 1 || exit 9'))
        expect(process.resize).toBeUndefined()
        expect(await process.ended).toEqual({ kind: 'exited', code: 9 })
      })
    })

    describe('walls', () => {
      test('the user is not root, and can not become root', async () => {
        const result = await run(driver, pod, shell('id -u'))
        expect(Number(result.stdout)).toBeGreaterThanOrEqual(10_001)
        const caps = await run(driver, pod, shell('grep -E "^(CapEff|CapPrm|CapAmb)" /proc/self/status'))
        expect(caps.stdout).toMatch(/^(Cap\w+:\s+0+\n){3}$/)
        const privileges = await run(driver, pod, shell('grep NoNewPrivs /proc/self/status'))
        expect(privileges.stdout).toMatch(/^NoNewPrivs:\s+1\n$/)
      })

      test('HOME is /workspace, which can be written, as can /tmp', async () => {
        const script = 'echo $HOME && echo x > "$HOME/f" && cat /workspace/f && echo y > /tmp/f && cat /tmp/f'
        expect(await run(driver, pod, shell(script))).toMatchObject({ code: 0, stdout: '/workspace\nx\ny\n' })
      })

      test.each(['/', '/usr', '/etc', '/bin'])('%s can not be written', async (folder) => {
        const result = await run(driver, pod, shell(`: > ${folder}/probe`))
        expect(result.code).not.toBe(0)
      })

      test('nothing of the host’s environment is inside, and no token of the cluster', async () => {
        const environment = await run(driver, pod, shell('env; cat /proc/*/environ 2>/dev/null'))
        expect(environment.stdout.includes('HOME=/workspace')).toBe(true)
        expect(environment.stdout.includes(hostSecret)).toBe(false)
        expect(environment.stdout.includes('SANDLOT_')).toBe(false)
        expect(await run(driver, pod, shell('test ! -e /var/run/secrets/kubernetes.io'))).toMatchObject({
          code: 0,
        })
      })

      test('two sandboxes see neither files nor processes of each other', async () => {
        const other = await createReady()
        try {
          const hidden =
            'echo mine > /workspace/mine; echo mine > /tmp/mine; sleep 98765 >/dev/null 2>&1 & echo $!'
          const { stdout } = await run(driver, other, shell(hidden))
          const look = 'ls /workspace /tmp; cat /proc/[0-9]*/cmdline | tr "\\0" " "'
          const own = await run(driver, other, shell(look))
          const seen = await run(driver, pod, shell(`: ${stdout.trim()}; ${look}`))
          // No more than the answer, or a failure would print every process of the machine.
          const find = (text: string) => ['mine', 'sleep 98765'].filter((word) => text.includes(word))
          expect(find(own.stdout)).toEqual(['mine', 'sleep 98765'])
          expect(find(seen.stdout)).toEqual([])
        } finally {
          await driver.delete(other)
        }
      })
    })
  })
}

export const newSandboxId = (): string => `sbx_${ulid().toLowerCase()}`

/** What a request says of a warm pod. */
export const ofNobody = () => ({ name: `warm-${ulid().toLowerCase()}` })

/** What a request says of a pod that is made for one sandbox. */
export const ofSandbox = (sandboxId = newSandboxId()) => ({ name: podName(sandboxId), sandboxId })

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** What this process holds, in bytes: buffers that wait for a reader are in here. */
function memory(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
