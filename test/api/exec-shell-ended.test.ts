/** Commands that kill or stop the shell that waits for them. Every reported exit status must be real. */
import { expect, test } from 'vitest'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import { describeOnBothDrivers } from '../support/drivers.ts'
import { inside } from '../support/sandbox-commands.ts'
import { shareSandbox } from '../support/shared.ts'

describeOnBothDrivers('a command that signals its shell', (driver) => {
  const { world, alice, params, exec, sh, countOf, waitForExit } = shareSandbox({ driver })

  const lost = { status: 'lost', exit_code: null, signal: null, truncated: true }
  const inRow = async (id: string) =>
    (await alice.call('listExecs', { params })).body.data.find((one) => one.id === id)

  async function inBackground(body: ExecRequest, onStart: (exec_id: string) => unknown = () => {}) {
    const { id } = (await alice.call('execCommand', { params, body: { ...body, background: true } })).body
    await onStart(id)
    return await waitForExit(id)
  }

  // Some runtimes report the shell's exit only after the command has closed the shell's streams.
  const sleep = (seconds: number) => `exec sleep ${seconds} >/dev/null 2>&1`
  const odd = './x) Z 1 1 1'

  test.each([
    ['kills the shell', `kill -9 $PPID; ${sleep(7201)}`],
    ['kills the process group', `kill -9 0; ${sleep(7201)}`],
    ['kills the shell from the background', `(sleep 0.1; kill -9 $PPID) >/dev/null 2>&1 & ${sleep(7201)}`],
    ['ignores SIGHUP and SIGTERM and kills the shell', `trap "" HUP TERM; kill -9 $PPID; ${sleep(7201)}`],
    [
      'has more process groups in its session, whose processes have odd names',
      `cp "$(command -v sleep)" "${odd}"; exec bash -c 'set -m; exec >/dev/null 2>&1; "${odd}" 7201 & sleep 7201 & kill -9 $PPID; wait'`,
    ],
  ])('a command that kills its shell is reported as lost and leaves no processes: it %s', async (_, line) => {
    const result = await sh(`echo before; ${line}`)
    expect(await countOf('7[2]01')).toBe(0)
    expect(result).toMatchObject({
      ...lost,
      stdout: 'before\n',
      reason: expect.stringContaining('(SIGKILL)'),
    })
    expect(result.reason).not.toContain('may still be running')
    const { id, reason, duration_ms } = result
    expect(await inRow(id)).toMatchObject({ ...lost, reason, duration_ms, stdout_bytes: 7, stderr_bytes: 0 })
  })

  test('a command that outlives its shell is killed before it is reported as lost', async () => {
    const { stdout, ...result } = await sh(
      'echo before; kill -9 $PPID; sleep 1.97; echo after; date >late; exit 5',
    )
    expect(await countOf('slee[p] 1.97')).toBe(0)
    expect(result).toMatchObject(lost)
    expect(stdout).toMatch(driver === 'local' ? /^before\n$/ : /^before\n(after\n)?$/)
  })

  test('a command that kills every process it can see is reported as lost, or as killed if its pod dies', async () => {
    const at = { id: (await alice.call('createSandbox')).body.id }
    const box = inside(alice, at)
    const result = await box.sh(`kill -9 -1; ${sleep(7209)}`)
    if (driver === 'local') {
      expect(await box.countOf('slee[p] 7209')).toBe(0)
      expect(result).toMatchObject(lost)
    } else expect(result).toMatchObject({ status: 'killed', reason: 'pod_failed', exit_code: null })
  })

  test('a command that starts a new Unix session and kills its shell leaves no process behind', async () => {
    const result = await exec({ command: ['setsid', 'sh', '-c', `kill -9 $PPID; ${sleep(7202)}`] })
    expect(await countOf('slee[p] 7202')).toBe(0)
    expect(result).toMatchObject(lost)
  })

  test.each([
    ['with stdin', { stdin: 'go\n' }],
    // containerd 1.6 does not report the exit of a process with more than 128 KiB of unread stdin.
    ['with more stdin than it reads', { stdin: 'go\n'.repeat(20_000) }],
  ])('a command %s that kills its shell is reported as lost and leaves no processes', async (_, more) => {
    const result = await sh(`read -r word; echo "$word"; kill -9 $PPID; ${sleep(7203)}`, more)
    expect(await countOf('slee[p] 7203')).toBe(0)
    expect(result).toMatchObject({ ...lost, stdout: 'go\n' })
  })

  test('a background command that kills its shell leaves no process behind', async () => {
    const result = await inBackground({ command: `kill -9 $PPID; ${sleep(7204)}` })
    expect(await countOf('slee[p] 7204')).toBe(0)
    expect(result).toMatchObject(lost)
  })

  // On Kubernetes, the parent is outside the pod. `$PPID` is therefore 0, which means the command's own
  // group.
  test.each([
    ['KILL', 'SIGKILL'],
    ['TERM', 'SIGTERM'],
  ])(
    'if a command in a terminal sends %s to its parent, reports it as lost (local) or signaled (Kubernetes)',
    async (signal, name) => {
      const result = await inBackground({
        command: `trap "" HUP; kill -${signal} $PPID; sleep 7205; sleep 7205`,
        tty: true,
      })
      expect(await countOf('slee[p] 7205')).toBe(0)
      expect(result).toMatchObject(
        driver === 'local'
          ? { ...lost, reason: expect.stringMatching(/terminal/) }
          : { status: 'signaled', signal: name },
      )
    },
  )

  test('reports the exit status of a command that sends signals to its shell', async () => {
    const signals =
      'HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 PIPE ALRM TERM XCPU XFSZ VTALRM PROF SYS'
    const result = await sh(`for s in ${signals}; do kill -$s $PPID; done; exit 5`)
    expect(result).toMatchObject({ status: 'exited', exit_code: 5, reason: null, truncated: false })
  })

  test('reports the signal that ended a command when its shell received the same signal', async () => {
    expect(await sh('kill -SEGV 0; sleep 7206')).toMatchObject({ status: 'signaled', signal: 'SIGSEGV' })
  })

  test('the timeout ends a command that has suspended its shell', async () => {
    const result = await sh('kill -STOP $PPID; sleep 7207 & exit 3', { timeout_ms: 500 })
    expect(await countOf('slee[p] 7207')).toBe(0)
    expect(result).toMatchObject({ status: 'timed_out', exit_code: null, signal: null })
  })

  test('stopping a command with KILL also resumes its suspended shell, which reports the exit status', async () => {
    const result = await inBackground({ command: 'kill -STOP $PPID; exit 3' }, async (exec_id) => {
      await world.eventually(
        async () => (await sh("grep -lE '^State:\\sT' /proc/*/status")).exit_code === 0,
        10_000,
      )
      await world.eventually(async () => (await countOf('kil[l] -STOP')) === 0, 10_000)
      await alice.call('stopExec', { params: { ...params, exec_id }, query: { signal: 'KILL' } })
    })
    expect(result).toMatchObject({ status: 'exited', exit_code: 3 })
  })

  test.each([
    ['in the process group', ['sleep', '7208']],
    ['in a different Unix session', ['setsid', 'sleep', '7208']],
  ])("a client's KILL signal ends a command %s, and all its output is kept", async (_, command) => {
    const result = await inBackground({ command }, async (exec_id) => {
      await world.eventually(async () => (await countOf('slee[p] 7208')) === 1, 10_000)
      await alice.call('stopExec', { params: { ...params, exec_id }, query: { signal: 'KILL' } })
    })
    expect(await countOf('slee[p] 7208')).toBe(0)
    expect(result).toMatchObject({ status: 'signaled', signal: 'SIGKILL', reason: null, truncated: false })
  })
})
