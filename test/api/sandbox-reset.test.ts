/** A reset ends all processes. ./sandbox-exhausted.test.ts tests resets at the process limit. */
import { expect, test } from 'vitest'
import { describeOnEveryImageAtOnce } from '../support/drivers.ts'
import { shareSandbox } from '../support/shared.ts'

describeOnEveryImageAtOnce('a reset', ({ driver, env }) => {
  const { alice, params, sh, countOf, waitForExit } = shareSandbox({ driver, env })

  test('a reset keeps the files and kills even processes that continually start successors', async () => {
    // Three chains of processes. Each process starts its successor, exits, and ignores SIGHUP.
    const chain = 'trap "" HUP; next() { : >alive; sleep 0.02; next & }; for i in 1 2 3; do next & done'
    const command = `echo kept >kept; ${chain}; exec sleep 600`
    const { body } = await alice.call('execCommand', { params, body: { command, background: true } })
    const isAlive = async () => (await sh('rm -f alive; sleep 1; [ -e alive ]')).exit_code === 0
    expect(await isAlive()).toBe(true)
    await alice.call('resetSandbox', { params })
    expect(await isAlive()).toBe(false)
    expect(await countOf('slee[p] 600')).toBe(0)
    expect((await sh('cat kept')).stdout).toBe('kept\n')
    expect((await waitForExit(body.id)).status).toMatch(/^(signaled|lost)$/)
  })
})
