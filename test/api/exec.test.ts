import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import { describeOnBothDriversAtOnce } from '../support/drivers.ts'
import { expectDurationBelow } from '../support/eventually.ts'
import { inside } from '../support/sandbox-commands.ts'
import { shareSandbox } from '../support/shared.ts'

describeOnBothDriversAtOnce('exec', (driver) => {
  const { world, alice, params, exec, sh, countOf } = shareSandbox(
    { driver },
    { env: { FROM_CREATE: 'yes', BOTH: 'create' } },
  )

  test('runs an argv array unchanged, and a command string in a shell', async () => {
    const words = ['printf', '%s|', 'a b', "it's", '$HOME', '*', '"', '', '\\', 'ä\n']
    expect((await exec({ command: words })).stdout).toBe('a b|it\'s|$HOME|*|"||\\|ä\n|')
    expect((await sh('echo $HOME; echo $((6*7))')).stdout).toBe('/workspace\n42\n')
  })

  test("returns a command's exit code, stdout and stderr", async () => {
    const result = await sh('echo out; echo err >&2; exit 3')
    expect(result).toMatchObject({
      status: 'exited',
      exit_code: 3,
      signal: null,
      stdout: 'out\n',
      stderr: 'err\n',
    })
    expect(result).toMatchObject({ stdout_bytes: 4, stderr_bytes: 4, truncated: false })
    expect(result.duration_ms).toBeGreaterThan(0)
  })

  test('reports the signal that ended a command, without output from the shell', async () => {
    const result = await sh('kill -9 $$')
    expect(result).toMatchObject({
      status: 'signaled',
      signal: 'SIGKILL',
      exit_code: 137,
      stdout: '',
      stderr: '',
    })
  })

  test.each([{}, { env: { NAME: 'value' } }])(
    'a command name that begins with a hyphen is not treated as an option (other request fields: %o)',
    async (more) => {
      expect((await sh('-x foo', more)).exit_code).toBe(127)
      expect((await sh('-c', more)).exit_code).toBe(127)
      expect((await sh('-- echo', more)).exit_code).toBe(127)
      expect((await exec({ command: ['-x', 'foo'], ...more })).exit_code).toBe(127)
      await sh('mkdir -p bin; printf "#!/bin/sh\\necho ran \\$1\\n" >bin/-x; chmod +x bin/-x')
      const env = { ...more.env, PATH: '/workspace/bin:/usr/bin:/bin' }
      expect((await sh('-x foo', { env })).stdout).toBe('ran foo\n')
      expect((await exec({ command: ['-x', 'foo'], env })).stdout).toBe('ran foo\n')
    },
  )

  test('a command runs in a relative or absolute cwd, and exits with status 126 if the directory is missing', async () => {
    await sh('mkdir -p /workspace/deep/er')
    expect((await sh('pwd', { cwd: 'deep/er' })).stdout).toBe('/workspace/deep/er\n')
    expect((await sh('pwd', { cwd: '/tmp' })).stdout).toBe('/tmp\n')
    expect((await sh('pwd', { cwd: 'nowhere' })).exit_code).toBe(126)
  })

  test("a command's environment overrides the sandbox's environment", async () => {
    const env = { BOTH: 'exec', QUOTES: `'"$(id)\`\\`, LINES: 'a\nb', UID: '5', PPID: '6', OPTIND: 'x' }
    const { stdout, stderr } = await exec({ command: ['env'], env })
    for (const line of [
      'FROM_CREATE=yes',
      'BOTH=exec',
      `QUOTES='"$(id)\`\\`,
      'LINES=a\nb',
      'UID=5',
      'PPID=6',
      'OPTIND=x',
    ]) {
      expect(stdout).toContain(`${line}\n`)
    }
    expect(stdout).not.toContain('KUBERNETES')
    expect(stderr).toBe('')
  })

  test('accepts the longest environment variable that Linux allows, and rejects a longer one', async () => {
    const most = limits.argumentBytes - 'A='.length
    const sizeOf = (A: string) => sh('printf %s "$A" | wc -c', { env: { A } })
    expect(Number((await sizeOf('x'.repeat(most))).stdout)).toBe(most)
    await expect(sizeOf('x'.repeat(most + 1))).rejects.toMatchObject({
      problem: { errors: [{ path: 'env' }] },
    })
  })

  test('a command without stdin reads an empty stdin', async () => {
    expect((await exec({ command: ['cat'] })).stdout).toBe('')
  })
  test('a command receives a large stdin with arbitrary characters unchanged', async () => {
    const stdin = `\0${'"\\/\b\f\n\r\t\u007fé語🎈'.repeat(20_000)}end`
    const { stdout } = await exec({ command: 'sha256sum', stdin, env: { A: 'b' } })
    expect(stdout).toContain(createHash('sha256').update(stdin).digest('hex'))
    const half = exec({ command: 'cat', stdin: `${stdin}\ud83c` })
    await expect(half).rejects.toMatchObject({ status: 400, problem: { errors: [{ path: 'stdin' }] } })
    const other = exec({ command: 'cat', stdin, timeout_ms: 0 })
    await expect(other).rejects.toMatchObject({ status: 400, problem: { errors: [{ path: 'timeout_ms' }] } })
  })

  test('a command that does not read its stdin exits normally', async () => {
    expect(await exec({ command: ['true'], stdin: 'x'.repeat(1_000_000) })).toMatchObject({ exit_code: 0 })
  })

  test('a command timeout kills the whole process group and returns the output so far', async () => {
    const result = await sh('echo before; sleep 61 & sleep 62', { timeout_ms: 500 })
    expect(result).toMatchObject({ status: 'timed_out', exit_code: null, signal: null, stdout: 'before\n' })
    expectDurationBelow(result.duration_ms, 10_000)
    await world.eventually(async () => (await countOf('sleep 6[12]')) === 0, 5_000)
  })

  test('a timeout kills a command that ignores SIGTERM', async () => {
    const result = await sh('trap "" TERM; echo stubborn; while :; do sleep 1; done', { timeout_ms: 300 })
    expect(result).toMatchObject({ status: 'timed_out', stdout: 'stubborn\n' })
  })

  test('a process left in the background by a command does not delay the response', async () => {
    const { stdout, duration_ms } = await sh('sleep 300 & echo $!')
    expectDurationBelow(duration_ms, 5_000)
    expect((await sh(`kill -0 ${stdout.trim()} && kill ${stdout.trim()}`)).exit_code).toBe(0)
  })

  test('only the beginning and end of large output are returned, along with its total size in bytes', async () => {
    const result = await sh('echo first; head -c 3000000 /dev/zero | tr "\\0" x; echo; echo last')
    expect(result.stdout_bytes).toBe(3_000_012)
    expect(result.truncated).toBe(true)
    expect(Buffer.byteLength(result.stdout)).toBeLessThan(limits.outputBytes + 100)
    expect(result.stdout.startsWith('first\nxxx')).toBe(true)
    expect(result.stdout).toMatch(/\n\[\.\.\. \d+ bytes left out \.\.\.\]\n/)
    expect(result.stdout.endsWith('x\nlast\n')).toBe(true)
  })

  test('concurrent commands each return their own output', async () => {
    const numbers = Array.from({ length: 12 }, (_, index) => index)
    const results = await Promise.all(numbers.map((n) => sh(`echo ${n}; exit ${n}`)))
    expect(results.map(({ stdout, exit_code }) => [stdout, exit_code])).toEqual(
      numbers.map((n) => [`${n}\n`, n]),
    )
  })

  test('kills a command when its client disconnects', async () => {
    const leave = new AbortController()
    const left = alice.call('execCommand', {
      params,
      body: { command: 'touch started; exec sleep 777' },
      signal: leave.signal,
    })
    await world.eventually(async () => (await sh('test -e started')).exit_code === 0, 10_000)
    leave.abort()
    await expect(left).rejects.toThrow()
    await world.eventually(async () => (await countOf('sleep 77[7]')) === 0, 5_000)
  })

  test('reports a command as killed when its sandbox is destroyed', async () => {
    const { body: other } = await alice.call('createSandbox')
    const running = alice.call('execCommand', {
      params: { id: other.id },
      body: { command: 'echo up; sleep 60' },
    })
    await world.eventually(async () => {
      return (await inside(alice, other).countOf('sleep 6[0]')) > 0
    }, 10_000)
    await alice.call('destroySandbox', { params: { id: other.id } })
    expect((await running).body).toMatchObject({ status: 'killed', exit_code: null, stdout: 'up\n' })
  })
})
