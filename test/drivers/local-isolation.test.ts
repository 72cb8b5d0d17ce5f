import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readStat } from '../../shared/platform/process-stat.mjs'
import { SettingsError } from '../../shared/platform/settings.ts'
import type { PodDeath } from '../../workers/drivers/driver.ts'
import { destroyAllSandboxes } from '../../workers/drivers/local/destroy-all.ts'
import { eventually } from '../support/eventually.ts'
import {
  agentPid,
  bwrap,
  createReady,
  deathOf,
  directory,
  findProcesses,
  hasCgroups,
  keepDirectory,
  killFirstProcess,
  machine,
  openDriver,
  startWorker,
} from './local-world.ts'
import { firstLine, type RunResult, run, shell } from './processes.ts'

keepDirectory()

/** Expected rejections of system calls, and working fallbacks of libraries. */
const numbers = process.arch === 'arm64' ? '425, 219, 241, 282, 220, 198' : '425, 250, 298, 323, 56, 41'
const probe = `perl -e 'my @n = (${numbers}); my $i = 0;
for ([$n[0], 1, 0], [$n[1], 0, -3], [$n[2], 0, 0], [$n[3], 0], [435, 0, 0], [$n[4], 0x10000011, 0], [$n[5], 40, 1, 0]) {
  my $r = syscall($_->[0], @$_[1 .. $#$_]); exit if $r == 0; print $r == -1 ? $! + 0 : "done", " " }'
unshare --user true 2>/dev/null || echo alone`
const probed = '38 1 1 1 38 1 1 alone\n'

describe('local isolation', () => {
  test('the only network interface in a local sandbox is the loopback interface', async () => {
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
    'a local sandbox cannot see %s',
    async (path) => {
      const { pod, driver } = await createReady()
      const seen = await run(driver, pod, shell(`ls -A '${path}'`))
      expect(seen.code === 0 ? seen.stdout : '').toBe('')
    },
  )

  test('the size of /tmp in a local sandbox is limited to 64 MiB', async () => {
    const { pod, driver } = await createReady()
    const result = await run(driver, pod, shell('head -c 80000000 /dev/zero > /tmp/big'))
    expect(result.code).not.toBe(0)
    expect(result.stderr).toContain('No space left')
  })

  test.runIf(machine.isRoot)('each local sandbox runs as a separate host user, never as root', async () => {
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

  test.runIf(existsSync('/usr/bin/perl'))('rejects system calls that no sandbox needs', async () => {
    const { pod, driver } = await createReady()
    expect(await run(driver, pod, shell(probe))).toMatchObject({ stdout: probed, code: 0 })
  })

  test('a local sandbox with too many files is ended without affecting other sandboxes', async () => {
    const more = { SANDBOX_INODES: '1000' }
    const fill = 'i=0; while [ $i -lt 1500 ]; do : >$i; i=$((i+1)); done; sleep 60'
    // The last path exceeds the maximum length.
    const places = ['', 'while mkdir longname && cd longname; do :; done']
    const { driver, pod: neighbour } = await createReady({ more })
    await run(driver, neighbour, shell('i=0; while [ $i -lt 750 ]; do : >$i; i=$((i+1)); done'))
    const deaths = new Map<string, PodDeath>()
    driver.watch((state) => deaths.set(state.uid, state.death))
    const fillAt = async (place: string) => {
      const { pod } = await createReady({ more })
      await driver.start(pod, shell(`cd; ${place}\n${fill}`))
      await eventually(() => deaths.has(pod.uid), 30_000)
      expect(deaths.get(pod.uid)).toEqual({
        reason: 'pod_failed',
        detail: 'Evicted: it has more than 1000 files and folders',
      })
      await expect(driver.start(pod, ['true'])).rejects.toThrow(/Evicted/)
    }
    await Promise.all(places.map(fillAt))
    expect(await run(driver, neighbour, shell('ls | wc -l'))).toMatchObject({ stdout: '750\n' })
    expect(deaths.has(neighbour.uid)).toBe(false)
  })

  test("the agent of a local sandbox is restarted after the sandbox's user kills it", async () => {
    const { pod, driver } = await createReady()
    const process = await driver.start(pod, shell('read go; kill -KILL $PPID; sleep 600'))
    process.stdin.write('go\n')
    expect(await process.ended).toMatchObject({ kind: 'lost' })
    expect(await run(driver, pod, shell('echo back'))).toMatchObject({ stdout: 'back\n' })
  })

  test('all processes of a local sandbox can be killed from outside, even while its agent is suspended', async () => {
    const { pod, driver } = await createReady()
    const script = 'sleep 600 >/dev/null 2>&1 & echo $!; read go; kill -STOP $PPID'
    const process = await driver.start(pod, shell(script))
    const left = await firstLine(process.stdout)
    const agent = readStat(agentPid(pod.name))!
    process.stdin.write('go\n')
    await eventually(() => readStat(agentPid(pod.name))![0] === 'T', 10_000)
    await driver.endProcesses(pod)
    expect(await process.ended).toMatchObject({ kind: 'lost' })
    expect((await run(driver, pod, shell(`kill -0 ${left} 2>/dev/null`))).code).not.toBe(0)
    expect(readStat(agentPid(pod.name))![19]).not.toBe(agent[19])
  })

  test("recreates a sandbox's output pipes after they are removed, made inaccessible or replaced", async () => {
    const { pod, driver } = await createReady()
    const folder = '/run/sandlot/pipes'
    for (const harm of [
      `rm -f ${folder}/*`,
      `chmod 000 ${folder}`,
      `for f in ${folder}/*; do rm $f; echo x >$f; done`,
      `for f in ${folder}/*; do rm $f; mkdir $f; done`,
      `for f in ${folder}/*; do ln -sf /dev/null $f; done`,
    ]) {
      await run(driver, pod, shell(harm))
      const seen = await run(driver, pod, shell('echo out >/dev/stdout; echo err >/dev/stderr'))
      expect(seen).toEqual({ stdout: 'out\n', stderr: 'err\n', code: 0 })
    }
  })

  test("processes in a local sandbox do not inherit the agent's socket", async () => {
    const { pod, driver } = await createReady()
    const seen = await run(driver, pod, shell('ls -l /proc/self/fd'))
    expect(seen.stdout).not.toContain('socket:')
  })

  test("deletes a sandbox's files even if their paths are very long or their folders are inaccessible", async () => {
    const { pod, driver } = await createReady()
    const deep = 'i=0; while [ $i -lt 900 ]; do mkdir longname && cd longname || exit 1; i=$((i+1)); done'
    await run(driver, pod, shell(`${deep}; cd /workspace; mkdir -p closed/in; chmod 0 closed`))
    await driver.delete(pod)
    expect(existsSync(join(directory, pod.name))).toBe(false)
  })

  const canBeAnybody =
    bwrap && machine.isRoot && [import.meta.dirname, dirname(process.execPath)].every(isReachable)
  test.runIf(canBeAnybody)('sandboxes run by an ordinary user are isolated and have terminals', async () => {
    const script = `${probe}; id -u; echo $HOME; echo x > f && cat /workspace/f; ls /proc | grep -c "^[0-9]"; script -qfec tty /dev/null; : > /usr/x`
    const { result } = await runAsAnybody(script)
    expect(result.stdout.replace(probed, '')).toMatch(/^10001\n\/workspace\nx\n[1-9]\n\/dev\/pts\/0\r\n$/)
    expect(result.stdout).toContain(probed)
    expect(result.code).not.toBe(0)
  })

  test.runIf(canBeAnybody)(
    "an ordinary user's sandbox can be reset after it makes its folders inaccessible",
    async () => {
      const closeAll = 'chmod 000 /workspace /tmp /dev/shm /run/sandlot/*; rm -rf /run/sandlot/*/*'
      const { own, result } = await runAsAnybody(
        `${closeAll}; kill -KILL 1 2>/dev/null; kill -STOP 1; echo closed`,
      )
      expect(result.stdout).toBe('closed\n')
      const { driver } = openDriver({ directory: own })
      const [pod] = await driver.list()
      expect(pod!.death).toBeUndefined()
      const open = await run(driver, pod!, shell('pwd; echo out >/dev/stdout'))
      expect(open).toMatchObject({ stdout: '/\nout\n', code: 0 })
      await driver.endProcesses(pod!)
      expect(await run(driver, pod!, shell('chmod 700 /workspace; cd && pwd'))).toMatchObject({
        stdout: '/workspace\n',
      })
    },
  )
})

describe.runIf(hasCgroups)('local limits', () => {
  const more = { SANDBOX_MEMORY: '128Mi', SANDBOX_PIDS: '32', SANDBOX_CPU: '250m' }

  test("only the process that exceeds the memory limit is killed, and the sandbox's later death is reported as OOMKilled", async () => {
    const { pod, driver } = await createReady({ more })
    const hog = await run(driver, pod, shell('head -c 300000000 /dev/zero | tail -c 300000000 | wc -c'))
    expect(Number(hog.stdout)).toBeLessThan(300_000_000)
    expect(await run(driver, pod, shell('echo fine'))).toMatchObject({ stdout: 'fine\n' })
    killFirstProcess(pod.name)
    await eventually(async () => (await deathOf(driver, pod.name)) !== undefined, 10_000)
    expect(await deathOf(driver, pod.name)).toEqual({ reason: 'pod_failed', detail: 'OOMKilled' })
  })

  test('a local sandbox cannot start more processes than its limit', async () => {
    const { pod, driver } = await createReady({ more })
    const script = 'i=0; while [ $i -lt 100 ]; do sleep 600 & i=$((i+1)); done; echo all'
    const result = await run(driver, pod, shell(script))
    expect(result.stdout).toBe('')
    expect(result.code).not.toBe(0)
  })

  test('limits the CPU time of a local sandbox to a quarter of a processor', async () => {
    const { pod, driver } = await createReady({ more })
    const { stdout } = await run(driver, pod, shell('timeout 2 sh -c "while :; do :; done"; times'))
    const [, user, system] = /\n0m([\d.]+)s 0m([\d.]+)s\n$/.exec(stdout)!
    expect(Number(user) + Number(system)).toBeLessThan(1)
  })
})

test('without a working bubblewrap, a worker fails to start and explains the fix', () => {
  const open = () => openDriver({ bwrap: '/no/such/bwrap' })
  expect(open).toThrow(SettingsError)
  expect(open).toThrow(/cannot be isolated[\s\S]*\/no\/such\/bwrap[\s\S]*apt-get install bubblewrap/i)
})

/** Runs a script in a sandbox of an unprivileged user. @returns the result and the sandbox directory */
async function runAsAnybody(script: string) {
  const own = mkdtempSync(join(tmpdir(), 'sandlot-local-'))
  chownSync(own, 40_123, 40_123)
  chmodSync(own, 0o755)
  onTestFinished(async () => {
    await destroyAllSandboxes(own)
    rmSync(own, { recursive: true })
  })
  // Copied, because the original may be in root's cache.
  copyFileSync(bwrap!, join(own, '.bwrap'))
  chmodSync(join(own, '.bwrap'), 0o755)
  const worker = startWorker({ directory: own, script, uid: 40_123, bwrap: join(own, '.bwrap') })
  await worker.line()
  worker.go()
  await worker.line()
  return { own, result: JSON.parse(await worker.line()) as RunResult }
}

/** Whether all parent directories can be entered by any user. */
function isReachable(folder: string): boolean {
  const parent = dirname(folder)
  return (statSync(folder).mode & 0o001) !== 0 && (parent === folder || isReachable(parent))
}
