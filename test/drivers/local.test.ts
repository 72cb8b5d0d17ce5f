/** The local driver: the contract, and what only it has. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { podName } from '../../shared/data/ids.ts'
import { SettingsError } from '../../shared/platform/settings.ts'
import { type Driver, DriverUnavailable, type PodDeath } from '../../workers/drivers/driver.ts'
import { endAllSandboxes } from '../../workers/drivers/local/end-all.ts'
import { openLocalDriver } from '../../workers/drivers/local/index.ts'
import { examineMachine, isReachable } from '../../workers/drivers/local/machine.ts'
import { identify } from '../../workers/drivers/local/process-id.ts'
import { describeDriver, newSandboxId, ofSandbox } from './contract.ts'
import { localSettings } from './local-settings.ts'
import { collect, eventually, firstLine, run, shell } from './processes.ts'

const bwrap = process.env.SANDBOX_LOCAL_BWRAP ?? inject('services')?.bwrap
const directory = mkdtempSync(join(tmpdir(), 'sandlot-local-'))
const machine = examineMachine(localSettings({ directory, bwrap }))
/** By their numbers; what was refused, how, and that what libraries take in their place works. */
const numbers = process.arch === 'arm64' ? '425, 219, 241, 282, 220, 198' : '425, 250, 298, 323, 56, 41'
const probe = `perl -e 'my @n = (${numbers}); my $i = 0;
for ([$n[0], 1, 0], [$n[1], 0, -3], [$n[2], 0, 0], [$n[3], 0], [435, 0, 0], [$n[4], 0x10000011, 0], [$n[5], 40, 1, 0]) {
  my $r = syscall($_->[0], @$_[1 .. $#$_]); exit if $r == 0; print $r == -1 ? $! + 0 : "done", " " }'
unshare --user true 2>/dev/null || echo alone`
const probed = '38 1 1 1 38 1 1 alone\n'
const hasWalls = machine.isolation !== 'plain'
const hasCgroups = machine.cgroups.flatMap((parent) => parent.controllers).length === 3

afterAll(async () => {
  await endAllSandboxes(directory)
  rmSync(directory, { recursive: true })
})

describe.runIf(hasWalls)('with walls', () => {
  describeDriver('local', async () => {
    const { driver } = openDriver()
    return { driver, image: 'any', close: () => driver.close() }
  })

  test('there is no network but the loopback', async () => {
    const { pod, driver } = await createReady()
    const { stdout } = await run(
      driver,
      pod,
      shell('tail -n +3 /proc/net/dev | cut -d: -f1; cat /proc/net/route'),
    )
    expect(stdout.trim().split(/\s+/)[0]).toBe('lo')
    expect(stdout.trim().split('\n')).toHaveLength(stdout.includes('Iface') ? 2 : 1)
  })

  test.each([homedir(), resolve('.'), directory, '/home', '/root', '/var', '/sys', '/etc/shadow'])(
    '%s is not in sight',
    async (path) => {
      const { pod, driver } = await createReady()
      const seen = await run(driver, pod, shell(`ls -A '${path}'`))
      expect(seen.code === 0 ? seen.stdout : '').toBe('')
    },
  )

  test('/tmp is full at 64 MiB', async () => {
    const { pod, driver } = await createReady()
    const result = await run(driver, pod, shell('head -c 80000000 /dev/zero > /tmp/big'))
    expect(result.code).not.toBe(0)
    expect(result.stderr).toContain('No space left')
  })

  test.runIf(machine.isRoot)('each sandbox has a user of its own on the host, never root', async () => {
    const uids = []
    for (const seconds of [54_321, 54_322]) {
      const { pod, driver } = await createReady()
      await run(driver, pod, shell(`sleep ${seconds} >/dev/null 2>&1 &`))
      const pid = findProcesses(`sleep\0${seconds}\0`)[0]!
      uids.push(Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]))
    }
    expect(Math.min(...uids)).toBeGreaterThan(65_535)
    expect(uids[0]).not.toBe(uids[1])
  })

  test.runIf(existsSync('/usr/bin/perl'))('system calls that no sandbox needs are refused', async () => {
    const { pod, driver } = await createReady()
    expect(await run(driver, pod, shell(probe))).toMatchObject({ stdout: probed, code: 0 })
  })

  test('one that makes more files than it may is ended, wherever it makes them, and nobody else is', async () => {
    const more = { SANDBOX_INODES: '2000' }
    const fill = 'i=0; while [ $i -lt 3000 ]; do : >$i; i=$((i+1)); done; sleep 60'
    // The last is deeper than a path can be long.
    const places = ['', 'cd /run/sandlot/run', 'while mkdir longname && cd longname; do :; done']
    const { driver, pod: neighbour } = await createReady({ more })
    await run(driver, neighbour, shell('i=0; while [ $i -lt 1500 ]; do : >$i; i=$((i+1)); done'))
    const deaths = new Map<string, PodDeath>()
    driver.watch((state) => deaths.set(state.uid, state.death))
    const fillAt = async (place: string) => {
      const { pod } = await createReady({ more })
      await driver.start(pod, shell(`${place}\n${fill}`))
      await eventually(() => deaths.has(pod.uid), 30_000)
      expect(deaths.get(pod.uid)).toEqual({
        reason: 'pod_failed',
        detail: 'Evicted: it holds more than 2000 files and folders',
      })
      await expect(driver.start(pod, ['true'])).rejects.toThrow(/Evicted/)
    }
    await Promise.all(places.map(fillAt))
    expect(await run(driver, neighbour, shell('ls | wc -l'))).toMatchObject({ stdout: '1500\n' })
    expect(deaths.has(neighbour.uid)).toBe(false)
  })

  test('an agent that its user has killed is back at once', async () => {
    const { pod, driver } = await createReady()
    const process = await driver.start(pod, shell('read go; kill -KILL $PPID; sleep 600'))
    process.stdin.write('go\n')
    expect(await process.ended).toMatchObject({ kind: 'lost' })
    expect(await run(driver, pod, shell('echo back'))).toMatchObject({ stdout: 'back\n' })
  })

  test('an agent that talks nonsense hurts nobody', async () => {
    const { pod, driver } = await createReady()
    await run(driver, pod, shell(impostor('c.write(Buffer.alloc(9e6, 255))')))
    await expect(driver.start(pod, ['true'])).rejects.toThrow(DriverUnavailable)
    await expect(driver.ready(pod, AbortSignal.timeout(1_000))).rejects.toThrow()
  })

  test('a link in place of the agent’s socket leads nowhere', async () => {
    const { pod, driver } = await createReady()
    let visits = 0
    const secret = createServer(() => visits++).listen(join(directory, '.secret.sock'))
    await once(secret, 'listening')
    onTestFinished(() => void secret.close())
    chmodSync(join(directory, '.secret.sock'), 0o777)
    await run(driver, pod, shell(`ln -sf ${directory}/.secret.sock /run/sandlot/run/agent.sock`))
    await expect(driver.start(pod, ['true'])).rejects.toThrow(DriverUnavailable)
    expect(visits).toBe(0)
  })

  test('files that cannot be removed the plain way are removed', async () => {
    const { pod, driver } = await createReady()
    const deep = 'i=0; while [ $i -lt 900 ]; do mkdir longname && cd longname || exit 1; i=$((i+1)); done'
    await run(driver, pod, shell(`${deep}; cd /workspace; mkdir -p closed/in; chmod 0 closed`))
    await driver.delete(pod)
    expect(existsSync(join(directory, pod.name))).toBe(false)
  })

  const canBeAnybody =
    bwrap && machine.isRoot && [import.meta.dirname, dirname(process.execPath)].every(isReachable)
  test.runIf(canBeAnybody)('an ordinary user’s sandboxes have walls too, and terminals', async () => {
    const own = mkdtempSync(join(tmpdir(), 'sandlot-local-'))
    chownSync(own, 40_123, 40_123)
    chmodSync(own, 0o755)
    onTestFinished(async () => {
      await endAllSandboxes(own)
      rmSync(own, { recursive: true })
    })
    const script = `${probe}; id -u; echo $HOME; echo x > f && cat /workspace/f; ls /proc | grep -c "^[0-9]"; script -qfec tty /dev/null; : > /usr/x`
    // The one found may lie in root's own cache.
    copyFileSync(bwrap!, join(own, '.bwrap'))
    chmodSync(join(own, '.bwrap'), 0o755)
    const worker = startWorker({ directory: own, script, uid: 40_123, bwrap: join(own, '.bwrap') })
    await worker.line()
    worker.go()
    await worker.line()
    const result = JSON.parse(await worker.line())
    expect(result.stdout.replace(probed, '')).toMatch(/^10001\n\/workspace\nx\n[1-9]\n\/dev\/pts\/0\r\n$/)
    expect(result.stdout).toContain(probed)
    expect(result.code).not.toBe(0)
  })
})

describe.runIf(hasWalls && hasCgroups)('with limits', () => {
  const more = { SANDBOX_MEMORY: '128Mi', SANDBOX_PIDS: '32', SANDBOX_CPU: '250m' }

  test('more memory than the limit ends the process that takes it, not the sandbox', async () => {
    const { pod, driver } = await createReady({ more })
    const hog = await run(driver, pod, shell('head -c 300000000 /dev/zero | tail -c 300000000 | wc -c'))
    expect(Number(hog.stdout)).toBeLessThan(300_000_000)
    expect(await run(driver, pod, shell('echo fine'))).toMatchObject({ stdout: 'fine\n' })
  })

  test('a sandbox whose first process dies for want of memory was OOMKilled', async () => {
    const { pod, driver } = await createReady({ more })
    await run(driver, pod, shell('head -c 300000000 /dev/zero | tail -c 300000000 | wc -c'))
    killFirstProcess(pod.name)
    await eventually(async () => (await deathOf(driver, pod.name)) !== undefined, 10_000)
    expect(await deathOf(driver, pod.name)).toEqual({ reason: 'pod_failed', detail: 'OOMKilled' })
  })

  test('more processes than the limit are refused', async () => {
    const { pod, driver } = await createReady({ more })
    const script = 'i=0; while [ $i -lt 100 ]; do sleep 600 & i=$((i+1)); done; echo all'
    const result = await run(driver, pod, shell(script))
    expect(result.stdout).toBe('')
    expect(result.code).not.toBe(0)
  })

  test('a quarter of a processor is all it gets', async () => {
    const { pod, driver } = await createReady({ more })
    const { stdout } = await run(driver, pod, shell('timeout 2 sh -c "while :; do :; done"; times'))
    const [, user, system] = /\n0m([\d.]+)s 0m([\d.]+)s\n$/.exec(stdout)!
    expect(Number(user) + Number(system)).toBeLessThan(1)
  })
})

describe.runIf(hasWalls)('workers that die', () => {
  test('a sandbox outlives the kill -9 of its worker and of all that is in the worker’s group', async () => {
    const sandboxId = newSandboxId()
    const worker = startWorker({ sandboxId, script: 'sleep 600 >/dev/null 2>&1 & echo $!' })
    await worker.line()
    worker.go()
    const uid = await worker.line()
    const pid = JSON.parse(await worker.line()).stdout.trim()
    await worker.kill()
    const { driver } = openDriver()
    const found = (await driver.list()).find((pod) => pod.uid === uid)!
    expect(found.death).toBeUndefined()
    expect(await run(driver, found, shell(`kill -0 ${pid}`))).toMatchObject({ code: 0 })
    await driver.delete(found)
  })

  test('files that a worker has inherited do not reach the sandbox', async () => {
    const sandboxId = newSandboxId()
    const script = 'ls -l /proc/self/fd /proc/1/fd 2>/dev/null'
    const worker = startWorker({ sandboxId, script, inherits: join(directory, '.inherited') })
    await worker.line()
    expect(openFiles(worker.pid)).toContain(join(directory, '.inherited'))
    worker.go()
    await worker.line()
    expect(JSON.parse(await worker.line()).stdout).not.toContain('.inherited')
    for (const pid of findProcesses(podName(sandboxId)).filter((each) => each !== worker.pid)) {
      expect(openFiles(pid)).not.toContain(join(directory, '.inherited'))
    }
    await openDriver().driver.delete({ name: podName(sandboxId) })
  })

  test('whenever a worker dies while it creates, another one goes on or cleans up', {
    timeout: 120_000,
  }, async () => {
    const { driver } = openDriver()
    for (let ms = 0; ms < 24; ms++) {
      const sandboxId = newSandboxId()
      const worker = startWorker({ sandboxId })
      await worker.line()
      worker.go()
      await sleep(ms)
      await worker.kill()
      const before = (await driver.list()).find((pod) => pod.sandboxId === sandboxId)
      expect(before?.death).toBeUndefined()
      if (ms % 2 === 0) {
        const pod = await driver.create({ ...ofSandbox(sandboxId), image: 'any', deadlineSeconds: 60 })
        if (before) expect(pod.uid).toBe(before.uid)
        await driver.ready(pod, AbortSignal.timeout(20_000))
        expect(await run(driver, pod, shell('echo here'))).toMatchObject({ stdout: 'here\n' })
      }
      await driver.delete({ name: podName(sandboxId) })
      expect((await driver.list()).find((pod) => pod.sandboxId === sandboxId)).toBeUndefined()
      await eventually(() => findProcesses(podName(sandboxId)).length === 0, 5_000)
    }
    expect(readdirSync(directory).filter((name) => name.startsWith('sbx-'))).toEqual([])
  })

  test('workers that create the same sandbox at once make one', async () => {
    const sandboxId = newSandboxId()
    const workers = [1, 2, 3].map(() => startWorker({ sandboxId }))
    for (const worker of workers) await worker.line()
    for (const worker of workers) worker.go()
    const uids = await Promise.all(workers.map((worker) => worker.line()))
    expect(new Set(uids).size).toBe(1)
    const { driver } = openDriver()
    const pod = (await driver.list()).find((each) => each.sandboxId === sandboxId)!
    await driver.ready(pod, AbortSignal.timeout(20_000))
    expect(findProcesses('supervise.sh').filter((pid) => commandOf(pid).includes(pod.name))).toHaveLength(1)
    await driver.delete(pod)
  })

  test('creates and deletes of one sandbox, raced, leave nothing behind', { timeout: 60_000 }, async () => {
    const drivers = [openDriver().driver, openDriver().driver]
    const sandboxId = newSandboxId()
    const name = podName(sandboxId)
    await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const driver = drivers[index % 2]!
        const pod = await driver.create({ ...ofSandbox(sandboxId), image: 'any', deadlineSeconds: 60 })
        await sleep(Math.random() * 30)
        await driver.delete(index % 3 === 0 ? { name } : pod)
      }),
    )
    await drivers[0]!.delete({ name })
    expect(existsSync(join(directory, name))).toBe(false)
    await eventually(() => findProcesses(name).length === 0, 5_000)
  })

  test('another installation does not see the sandbox', async () => {
    const { pod } = await createReady()
    const { driver } = openDriver({ installationId: 'another' })
    expect((await driver.list()).map((each) => each.uid)).not.toContain(pod.uid)
  })

  test('all sandboxes of a folder can be ended', async () => {
    const own = mkdtempSync(join(tmpdir(), 'sandlot-local-'))
    onTestFinished(() => rmSync(own, { recursive: true }))
    const { driver } = openDriver({ directory: own })
    const pod = await driver.create({ ...ofSandbox(), image: 'any', deadlineSeconds: 60 })
    await driver.ready(pod, AbortSignal.timeout(20_000))
    await driver.create({ ...ofSandbox(), image: 'any', deadlineSeconds: 60 })
    expect(await endAllSandboxes(own)).toBe(2)
    expect(await driver.list()).toEqual([])
    expect(findProcesses(own)).toEqual([])
  })
})

describe.runIf(hasWalls)('watching', () => {
  test('tells within two seconds of a sandbox that died', async () => {
    const { pod, driver } = await createReady()
    const deaths = new Map<string, PodDeath>()
    driver.watch((state) => deaths.set(state.uid, state.death))
    killFirstProcess(pod.name)
    await eventually(() => deaths.has(pod.uid), 2_000)
    expect(deaths.get(pod.uid)?.reason).toBe('pod_failed')
  })

  test('tells of a sandbox that reached its deadline', async () => {
    const { pod, driver } = await createReady({ deadlineSeconds: 1 })
    const deaths = new Map<string, PodDeath>()
    driver.watch((state) => deaths.set(state.uid, state.death))
    await eventually(() => deaths.has(pod.uid), 5_000)
    expect(deaths.get(pod.uid)?.reason).toBe('expired')
  })
})

describe('without walls', () => {
  const none = { bwrap: '/no/such/bwrap' }
  const plain = { ...none, more: { SANDBOX_LOCAL_UNSAFE: 'yes' } }

  test('a worker refuses to run, and says what to do, unless it is told otherwise', () => {
    expect(() => openDriver(none)).toThrow(SettingsError)
    expect(() => openDriver(none)).toThrow(
      /no walls[\s\S]*apt-get install bubblewrap[\s\S]*SANDBOX_LOCAL_UNSAFE=yes/i,
    )
    openDriver(plain)
  })

  test('a warning names what is weaker and what to do', () => {
    const { log } = openDriver(plain)
    const warning = log.find((line) => line.level === 40)
    expect(warning?.msg).toMatch(/NO WALLS/)
    expect(warning?.msg).toMatch(/apt-get install bubblewrap/)
    expect(log.filter((line) => line.level === 40)).toHaveLength(1)
  })

  test('commands run, not as root, in a workspace of their own', async () => {
    const { pod, driver } = await createReady(plain)
    const result = await run(driver, pod, shell('cd "$HOME" && echo x > f && cat f; pwd; id -u; exit 4'))
    const [content, folder, uid] = result.stdout.split('\n')
    expect({ content, code: result.code }).toEqual({ content: 'x', code: 4 })
    expect(folder).toMatch(/workspace$/)
    expect(Number(uid)).not.toBe(0)
    const process = await driver.start(pod, ['cat'])
    process.stdin.end(Buffer.alloc(500_000, 7))
    expect((await collect(process.stdout)).length).toBe(500_000)
  })

  test('a terminal is one there too', async () => {
    const { pod, driver } = await createReady(plain)
    const process = await driver.start(pod, ['stty', 'size'], { tty: { rows: 11, columns: 22 } })
    expect(String(await collect(process.stdout))).toBe('11 22\r\n')
    expect(await process.ended).toEqual({ kind: 'exited', code: 0 })
  })

  test('a deletion ends processes that left their session', async () => {
    const { pod, driver } = await createReady(plain)
    const pid = await startEscape(driver, pod.name)
    await driver.delete(pod)
    expect(identify(pid)).toBeUndefined()
    expect(existsSync(join(directory, pod.name))).toBe(false)
  })

  test('the deadline ends processes that left their session', async () => {
    const { pod, driver } = await createReady({ ...plain, deadlineSeconds: 2 })
    const pid = await startEscape(driver, pod.name)
    await eventually(() => identify(pid) === undefined, 10_000)
    await eventually(async () => (await deathOf(driver, pod.name))?.reason === 'expired', 5_000)
  })

  async function startEscape(driver: Driver, name: string): Promise<number> {
    const process = await driver.start(
      { name },
      shell("trap '' TERM HUP; echo $$; while :; do sleep 1; done"),
    )
    return Number(await firstLine(process.stdout))
  }
})

interface LogLine {
  level: number
  msg: string
}

interface OpenOptions {
  directory?: string
  bwrap?: string
  installationId?: string
  more?: Record<string, string>
}

function openDriver(options: OpenOptions = {}): { driver: Driver; log: LogLine[] } {
  const log: LogLine[] = []
  const driver = openLocalDriver({
    settings: localSettings({ directory, bwrap, ...options }),
    installationId: options.installationId ?? 'tests',
    log: pino({}, { write: (line: string) => log.push(JSON.parse(line)) }),
  })
  return { driver, log }
}

async function createReady(options: OpenOptions & { deadlineSeconds?: number } = {}) {
  const { driver } = openDriver(options)
  const pod = await driver.create({
    ...ofSandbox(),
    image: 'any',
    deadlineSeconds: options.deadlineSeconds ?? 120,
  })
  onTestFinished(async () => {
    await driver.delete(pod)
    await driver.close()
  })
  await driver.ready(pod, AbortSignal.timeout(30_000))
  return { driver, pod }
}

interface WorkerOptions {
  directory?: string
  bwrap?: string
  sandboxId?: string
  script?: string
  /** Who runs it, where the tests run as root. */
  uid?: number
  /** A file it has open from its birth. */
  inherits?: string
}

function startWorker(options: WorkerOptions) {
  const file = join(import.meta.dirname, 'local-worker.ts')
  const words = [
    options.directory ?? directory,
    options.bwrap ?? bwrap ?? '',
    options.sandboxId ?? newSandboxId(),
  ]
  const ids = options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }
  const inherited = options.inherits ? openSync(options.inherits, 'w') : ('ignore' as const)
  const child: ChildProcess = spawn(process.execPath, [file, ...words, options.script ?? ''], {
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit', ...Array.from({ length: 20 }, () => inherited)],
    ...ids,
  })
  if (typeof inherited === 'number') closeSync(inherited)
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    process.kill(-child.pid!, 'SIGKILL')
    await once(child, 'exit')
  }
  onTestFinished(kill)
  return {
    pid: child.pid!,
    kill,
    go: () => void child.stdin!.write('go\n'),
    line: async () => String((await lines.next()).value),
  }
}

async function deathOf(driver: Driver, name: string): Promise<PodDeath | undefined> {
  return (await driver.list()).find((pod) => pod.name === name)?.death
}

function killFirstProcess(name: string): void {
  const status = readFileSync(join(directory, name, 'status'), 'utf8')
  process.kill(Number(/"child-pid": (\d+)/.exec(status)![1]), 'SIGKILL')
}

/** A server in place of the agent, and what it does with a connection `c`. */
function impostor(onConnection: string): string {
  const path = '/run/sandlot/run/agent.sock'
  const code = `require('fs').rmSync('${path}');require('net').createServer((c)=>{c.on('error',()=>{});${onConnection}}).listen('${path}',()=>console.log('up'))`
  return `/run/sandlot/node -e "${code}" > up 2>&1 & while ! grep -q up up; do sleep 0.05; done`
}

/** Pids of processes of the whole machine whose command line has this text. */
function findProcesses(text: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => commandOf(pid).includes(text))
}

function openFiles(pid: number): string[] {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).flatMap((fd) => {
    try {
      return [readlinkSync(join(folder, fd))]
    } catch {
      return []
    }
  })
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    return ''
  }
}
