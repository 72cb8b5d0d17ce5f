import { beforeAll, describe, expect, test } from 'vitest'
import type { Driver, Pod } from '../../../workers/drivers/driver.ts'
import { run, shell } from '../processes.ts'
import type { Contract } from './parts.ts'

export function describeIsolation(contract: Contract): void {
  describe('isolation', () => {
    let driver: Driver
    let pod: Pod
    beforeAll(() => {
      ;({ driver, pod } = contract.opened())
    })

    test('the user in a sandbox is not root and cannot become root', async () => {
      const result = await run(driver, pod, shell('id -u'))
      expect(Number(result.stdout)).toBeGreaterThanOrEqual(10_001)
      const caps = await run(driver, pod, shell('grep -E "^(CapEff|CapPrm|CapAmb)" /proc/self/status'))
      expect(caps.stdout).toMatch(/^(Cap\w+:\s+0+\n){3}$/)
      const privileges = await run(driver, pod, shell('grep NoNewPrivs /proc/self/status'))
      expect(privileges.stdout).toMatch(/^NoNewPrivs:\s+1\n$/)
    })

    test('HOME is /workspace, and both /workspace and /tmp are writable', async () => {
      const script = 'echo $HOME && echo x > "$HOME/f" && cat /workspace/f && echo y > /tmp/f && cat /tmp/f'
      expect(await run(driver, pod, shell(script))).toMatchObject({ code: 0, stdout: '/workspace\nx\ny\n' })
    })

    test.each(['/', '/usr', '/etc', '/bin'])('the folder %s of a sandbox is read-only', async (folder) => {
      const result = await run(driver, pod, shell(`: > ${folder}/probe`))
      expect(result.code).not.toBe(0)
    })

    test("a sandbox contains neither the host's environment variables nor a cluster token", async () => {
      const environment = await run(driver, pod, shell('env; cat /proc/*/environ 2>/dev/null'))
      expect(environment.stdout.includes('HOME=/workspace')).toBe(true)
      expect(environment.stdout.includes(contract.hostSecret)).toBe(false)
      expect(environment.stdout.includes('SANDLOT_')).toBe(false)
      expect(await run(driver, pod, shell('test ! -e /var/run/secrets/kubernetes.io'))).toMatchObject({
        code: 0,
      })
    })

    test("two sandboxes cannot see each other's files and processes", async () => {
      const other = await contract.createReady()
      try {
        const hidden =
          'echo mine > /workspace/mine; echo mine > /tmp/mine; sleep 98765 >/dev/null 2>&1 & echo $!'
        const { stdout } = await run(driver, other, shell(hidden))
        const look = 'ls /workspace /tmp; cat /proc/[0-9]*/cmdline | tr "\\0" " "'
        const own = await run(driver, other, shell(look))
        const seen = await run(driver, pod, shell(`: ${stdout.trim()}; ${look}`))
        // Compares only the result. A failure would otherwise print all processes of the machine.
        const find = (text: string) => ['mine', 'sleep 98765'].filter((word) => text.includes(word))
        expect(find(own.stdout)).toEqual(['mine', 'sleep 98765'])
        expect(find(seen.stdout)).toEqual([])
      } finally {
        await driver.delete(other)
      }
    })
  })
}
