/** The pid of a command, the reason why it never ran, and binary stdin and output. */
import { expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import { describeOnBothDriversAtOnce } from '../support/drivers.ts'
import { shareSandbox } from '../support/shared.ts'

describeOnBothDriversAtOnce('exec start', (driver) => {
  const { alice, params, exec, sh } = shareSandbox({ driver })

  test('results, the list and the start event contain the pid of the command', async () => {
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

  test('binary stdin reaches the command, and binary output is returned, byte for byte', async () => {
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

  test('stdin and stdin_base64 are mutually exclusive, and stdin_base64 must be base64', async () => {
    for (const stdin of [{ stdin: '', stdin_base64: '' }, { stdin_base64: 'a' }]) {
      const refused = exec({ command: ['cat'], ...stdin })
      await expect(refused).rejects.toMatchObject({ status: 400, code: 'invalid_request' })
    }
  })
})
