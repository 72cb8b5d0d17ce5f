/**
 * Tests the driver interface with real sandboxes.
 * The image may be busybox, so the tests use only POSIX sh and small tools.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe } from 'vitest'
import type { Pod } from '../../../workers/drivers/driver.ts'
import { describeConcurrently } from '../../support/describe-concurrently.ts'
import { untilReady } from '../processes.ts'
import { newSandboxId, ofSandbox } from '../requests.ts'
import { describeIsolation } from './isolation.ts'
import type { Contract, OpenDriver } from './parts.ts'
import { describeDeadlines, describePods } from './pods.ts'
import { describePorts } from './ports.ts'
import { describeProcesses } from './processes.ts'
import { describeTerminals } from './terminals.ts'

/** @param open opens another driver of the same installation */
export function describeDriver(
  name: string,
  open: () => Promise<OpenDriver>,
  { isWhole = true }: { isWhole?: boolean } = {},
): void {
  describe(`the ${name} driver`, () => {
    let opened: OpenDriver
    let pod: Pod
    const contract: Contract = {
      open,
      opened: () => ({ ...opened, pod }),
      request: (sandboxId, deadlineSeconds = 600) => ({
        ...ofSandbox(sandboxId),
        image: opened.image,
        deadlineSeconds,
      }),
      async createReady(sandboxId = newSandboxId()) {
        const created = await opened.driver.create(contract.request(sandboxId))
        await untilReady(opened.driver, created)
        return created
      },
      isWhole,
      hostSecret: `host-${randomUUID()}`,
    }

    beforeAll(async () => {
      process.env.SANDLOT_CONTRACT_PROBE = contract.hostSecret
      opened = await open()
      pod = await contract.createReady()
    })

    afterAll(async () => {
      delete process.env.SANDLOT_CONTRACT_PROBE
      if (pod) await opened.driver.delete(pod)
      await opened?.close()
    })

    describeConcurrently('tests that wait', () => describeDeadlines(contract))
    describeConcurrently('tests that create pods', () => describePods(contract))
    describeConcurrently('tests that share a pod', () => {
      describePorts(contract)
      describeProcesses(contract)
      describeTerminals(contract)
      describeIsolation(contract)
    })
  })
}
