/**
 * What workers/drivers/driver.ts promises, held against real sandboxes: both drivers run this
 * same suite. The image may be a busybox: only POSIX sh and small tools are used inside.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe } from 'vitest'
import type { Pod } from '../../../workers/drivers/driver.ts'
import { describeConcurrently } from '../../support/describe-concurrently.ts'
import { patient } from '../../support/eventually.ts'
import { newSandboxId, ofSandbox } from '../requests.ts'
import type { Contract, OpenDriver } from './parts.ts'
import { describeDeadlines, describePods } from './pods.ts'
import { describePorts } from './ports.ts'
import { describeProcesses } from './processes.ts'
import { describeTerminals } from './terminals.ts'
import { describeWalls } from './walls.ts'

/** @param open opens one more driver of the same installation, as one more worker would */
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
      async createReady(sandboxId = newSandboxId(), deadlineSeconds) {
        const created = await opened.driver.create(contract.request(sandboxId, deadlineSeconds))
        await opened.driver.ready(created, AbortSignal.timeout(patient(60_000)))
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

    describeConcurrently('those that wait', () => describeDeadlines(contract))
    describeConcurrently('those that make pods', () => describePods(contract))
    describeConcurrently('those that share a pod', () => {
      describePorts(contract)
      describeProcesses(contract)
      describeTerminals(contract)
      describeWalls(contract)
    })
  })
}
