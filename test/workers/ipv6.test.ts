import { networkInterfaces } from 'node:os'
import { describe, expect, test } from 'vitest'
import { shareSandbox } from '../support/shared.ts'

const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? [])

describe.skipIf(!addresses.some(({ address }) => address === '::1'))('a worker that listens on ::1', () => {
  const { alice, params } = shareSandbox({ env: { INTERNAL_HOST: '::1' } })

  test('a worker that listens on ::1 accepts RPCs from the API', async () => {
    const { body } = await alice.call('execCommand', { params, body: { command: 'echo there' } })
    expect(body).toMatchObject({ stdout: 'there\n', exit_code: 0 })
  })
})
