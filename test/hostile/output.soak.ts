/** Output of commands and redaction of secrets. */
import { expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { withNeighbour } from './neighbour.ts'

const world = shareWorld()

test("30 commands whose secrets are slow to match do not slow down other accounts' requests", async () => {
  await withNeighbour(world, async ({ account, sh }) => {
    for (let index = 0; index < 15; index++) {
      const end = String.fromCharCode(97 + index)
      const value = index % 2 ? `${'\n'.repeat(4_200)}${end}` : 'ab'.repeat(2_100) + end
      await account.call('createSecret', { body: { name: `SECRET_${index}`, value } })
    }
    for (let index = 0; index < 30; index++) {
      expect(await sh('true', { timeout_ms: 30_000 })).toMatchObject({ status: 'exited', exit_code: 0 })
    }
  })
})

test('a command cannot end its output early by printing a copy of the sentinel', async () => {
  await withNeighbour(world, async ({ sh }) => {
    // The sentinel is in the shell's memory. A command that cannot read that memory can only guess.
    const command = `
      heap=$(sed -n 's/^\\([0-9a-f]*\\)-\\([0-9a-f]*\\) .*\\[heap\\]$/\\1 \\2/p' /proc/$PPID/maps)
      from=$((0x\${heap% *} / 4096)) to=$((0x\${heap#* } / 4096))
      mark=$(dd if=/proc/$PPID/mem bs=4096 skip=$from count=$((to - from)) 2>/dev/null |
        tr -c '0-9a-f' '\\n' | grep -x '.\\{32\\}' | head -n 1)
      printf '\\036%s' "$mark"; head -c 24000000 /dev/zero; printf '%s' "$mark" | tail -c 40; exit 7`
    const ended = await sh(command, { timeout_ms: 60_000 })
    console.info(`the sentinel was ${ended.stdout_bytes === 24_000_065 ? '' : 'not '}found`)
    expect(ended).toMatchObject({ status: 'exited', exit_code: 7 })
  })
})
