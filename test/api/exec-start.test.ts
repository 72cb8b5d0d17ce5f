/** The pid of a command, the reason why it never ran, and binary stdin and output. */
import { expect, test } from 'vitest'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import { limits } from '../../shared/contract/limits.ts'
import { describeOnBothDriversAtOnce } from '../support/drivers.ts'
import { readEvents } from '../support/events.ts'
import { shareSandbox } from '../support/shared.ts'

describeOnBothDriversAtOnce('exec start', (driver) => {
  const { alice, params, exec, sh, waitForExit } = shareSandbox({ driver })

  test("a command's result, list entry and start event contain its pid", async () => {
    const result = await sh('echo $$')
    expect(result).toMatchObject({ start_error: null, stdout: `${result.pid}\n` })
    const started = await exec({ command: ['sleep', '60'], background: true })
    const { stdout } = await sh(`cat /proc/${started.pid}/comm`)
    expect(stdout).toBe('sleep\n')
    const listed = (await alice.call('listExecs', { params })).body.data
    expect(listed.find(({ id }) => id === started.id)?.pid).toBe(started.pid)
    expect(listed.find(({ id }) => id === result.id)?.pid).toBe(result.pid)
    const one = { params: { ...params, exec_id: started.id } }
    await alice.call('stopExec', { ...one, query: { signal: 'KILL' } })
    const headers = { accept: 'text/event-stream' }
    const body = { command: 'echo $$' }
    const events = await readEvents(await alice.open('execCommand', { params, headers, body })).rest()
    const { pid } = events[0]!.data
    expect(pid).toBeGreaterThan(0)
    expect(events.slice(0, 2).map(({ event, data }) => [event, data.text ?? data.pid])).toEqual([
      ['start', pid],
      ['stdout', `${pid}\n`],
    ])
    expect(events.at(-1)!.data).toMatchObject({ pid, start_error: null })
  })

  test('a command in a terminal reports its pid, or a start_error if its program cannot be started', async () => {
    const run = async (body: ExecRequest) => waitForExit((await exec({ ...body, tty: true })).id)
    const ran = await run({ command: 'echo $$; exit 127' })
    expect(ran).toMatchObject({ exit_code: 127, start_error: null, stdout: `${ran.pid}\r\n` })
    expect(await run({ command: ['nowhere'] })).toMatchObject({ exit_code: 127, start_error: 'not_found' })
    expect(await run({ command: ['/etc'] })).toMatchObject({ exit_code: 126, start_error: 'not_executable' })
    const inNowhere = await run({ command: ['pwd'], cwd: 'nowhere' })
    expect(inNowhere).toMatchObject({ exit_code: 126, start_error: 'no_such_directory' })
    const listed = (await alice.call('listExecs', { params })).body.data
    expect(listed[0]).toMatchObject({
      id: inNowhere.id,
      pid: inNowhere.pid,
      start_error: 'no_such_directory',
    })
  })

  test.each([
    { command: ['./here'], cwd: 'sub dir' },
    { command: ['sub dir/here'] },
    { command: ['here'], cwd: 'sub dir', env: { PATH: ':/usr/bin:/bin' } },
    { command: ['here'], cwd: 'sub dir', env: { PATH: '/usr/bin::/bin' } },
    { command: ['here'], cwd: 'sub dir', env: { PATH: '/usr/bin:/bin:' } },
    { command: [`it's "$x" *`], cwd: 'sub dir', env: { PATH: '/nowhere::/usr/bin:/bin' } },
    { command: [`./it's "$x" *`], cwd: 'sub dir' },
  ])('a program that exits with 127 has no start_error, however its path is resolved: %o', async (body) => {
    const write = 'printf "#!/bin/sh\nexit 127\n" >"$f"; chmod +x "$f"'
    await sh(`mkdir -p "sub dir"; cd "sub dir"; for f in here "it's \\"\\$x\\" *"; do ${write}; done`)
    expect(await exec(body)).toMatchObject({ exit_code: 127, start_error: null, stderr: '' })
    expect(await exec({ ...body, cwd: '/' })).toMatchObject({ exit_code: 127, start_error: 'not_found' })
  })

  test.each([{}, { env: { NAME: 'value' } }, { env: { PATH: '/workspace:/usr/bin:/bin' } }])(
    'start_error is set only if the command never ran (other request fields: %o)',
    async (more) => {
      await sh('echo >plain; printf "#!/bin/sh\nexit 127\n" >gone; chmod +x gone')
      const run = async (...command: string[]) => {
        const { exit_code, start_error } = await exec({ command, ...more })
        return [exit_code, start_error]
      }
      expect(await run('no-such-program')).toEqual([127, 'not_found'])
      expect(await run('cd', '/')).toEqual([127, 'not_found'])
      expect(await run('./nowhere')).toEqual([127, 'not_found'])
      expect(await run('./plain')).toEqual([126, 'not_executable'])
      expect(await run('/etc')).toEqual([126, 'not_executable'])
      expect(await run('./gone')).toEqual([127, null])
      expect(await run('sh', '-c', 'exit 126')).toEqual([126, null])
      expect(await run('sh', '-c', 'no-such-program')).toEqual([127, null])
      expect(await run('sh', '-c', 'rm -f gone; exit 127')).toEqual([127, null])
      const nowhere = await exec({ command: ['pwd'], cwd: 'nowhere', ...more })
      expect(nowhere).toMatchObject({ exit_code: 126, start_error: 'no_such_directory' })
    },
  )

  test('binary stdin and binary output are transferred byte for byte', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
    const stdin_base64 = bytes.toString('base64')
    const result = await exec({ command: ['cat'], stdin_base64, output_encoding: 'base64' })
    expect(result).toMatchObject({
      stdout: stdin_base64,
      output_encoding: 'base64',
      lossy: false,
      stdout_bytes: 256,
    })
    expect(await exec({ command: ['cat'], stdin_base64 })).toMatchObject({
      output_encoding: 'utf-8',
      lossy: true,
    })
  })

  test('secrets are redacted before output is encoded in base64', async () => {
    await alice.call('createSecret', { body: { name: 'TOKEN', value: 'p4ssw0rd!' } })
    const result = await sh('printf "<$TOKEN>\\377"; printf "<$TOKEN>\\377" >&2', {
      output_encoding: 'base64',
    })
    const redacted = Buffer.from('<[secret TOKEN]>\xff', 'latin1').toString('base64')
    expect(result).toMatchObject({ stdout: redacted, stderr: redacted })
  })

  test('long base64 output is truncated in the middle', async () => {
    const command = `head -c ${limits.outputBytes + 100} /dev/zero | tr '\\0' '\\377'`
    const result = await exec({ command, output_encoding: 'base64' })
    expect(result.truncated).toBe(true)
    const note = /\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n/
    const text = Buffer.from(result.stdout, 'base64').toString('latin1')
    const [whole = '', left] = note.exec(text) ?? []
    expect(text.length - whole.length + Number(left)).toBe(limits.outputBytes + 100)
    expect(text.replace(note, '')).toMatch(/^\xff+$/)
  })

  test('stdin and stdin_base64 are mutually exclusive, and stdin_base64 must be valid base64', async () => {
    const invalid = ['a', 'ab=', 'ab=c', 'abc', '====', 'ab-_', 'YQ==\n', 'YQ== '].map((stdin_base64) => ({
      stdin_base64,
    }))
    for (const stdin of [{ stdin: '', stdin_base64: '' }, { stdin: 'a', stdin_base64: 'YQ==' }, ...invalid]) {
      const refused = exec({ command: ['cat'], ...stdin })
      await expect(refused).rejects.toMatchObject({ status: 400, code: 'invalid_request' })
    }
    expect(await exec({ command: ['cat'], stdin_base64: '' })).toMatchObject({ exit_code: 0, stdout: '' })
    expect(await exec({ command: ['cat'], stdin_base64: 'YQ==' })).toMatchObject({ stdout: 'a' })
  })
})
