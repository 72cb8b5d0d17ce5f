/** Quick-start steps of README and docs/cli.md on every driver. */
import { expect, test } from 'vitest'
import { describeOnBothDrivers } from '../support/drivers.ts'
import { startWorld } from '../support/index.ts'
import { Home } from './client.ts'
import { password } from './users.ts'

describeOnBothDrivers('the quick start', (driver) => {
  test('a new user can sign up, create a sandbox, work in it and destroy it', async () => {
    await using world = await startWorld({ driver })
    using home = new Home()
    const asked = ['--email', 'stranger@example.com', '--password-stdin']
    const signup = await home.run(['signup', '--url', world.url(), ...asked], { input: password })
    expect(signup).toMatchObject({ code: 0, stderr: '' })

    const create = await home.run(['session', 'create'])
    expect(create).toMatchObject({ code: 0, stderr: '' })
    const id = create.stdout.trim()
    expect(await home.run(['exec', '--', 'echo', 'hello'])).toMatchObject({
      code: 0,
      stdout: 'hello\n',
      stderr: '',
    })
    const failing = await home.run(['exec', '-c', 'cat; echo problem >&2; exit 42'], {
      input: 'from stdin',
    })
    expect(failing).toMatchObject({ code: 42, stdout: 'from stdin', stderr: 'problem\n' })
    expect(await home.run(['exec', '--timeout', '1s', 'sleep', '60'])).toMatchObject({ code: 124 })
    expect(await home.run(['exec', 'no-such-command'])).toMatchObject({ code: 127 })

    expect(await home.run(['files', 'create', 'notes/a.txt'], { input: 'one\ntwo\n' })).toMatchObject({
      code: 0,
    })
    expect(await home.run(['files', 'view', 'notes/a.txt', '--lines', '2'])).toMatchObject({
      stdout: 'two\n',
    })
    expect(await home.run(['exec', 'cat', 'notes/a.txt'])).toMatchObject({ stdout: 'one\ntwo\n' })
    expect((await home.run(['whoami'])).stdout).toContain('\n1/2 concurrent sandboxes\n')

    expect(await home.run(['session', 'rm', '--yes'])).toMatchObject({ code: 0, stdout: `${id}\n` })
    expect((await home.run(['whoami'])).stdout).toContain('\n0/2 concurrent sandboxes\n')
    expect(await home.run(['exec', '-s', id, 'true'])).toMatchObject({ code: 125 })
    const { billed_seconds, destroy_reason } = (await home.run(['session', 'get', id, '--json'])).json()
    expect(destroy_reason).toBe('requested')
    expect(billed_seconds).toBeGreaterThan(1)
  })
})
