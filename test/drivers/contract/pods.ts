import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { podName } from '../../../shared/data/ids.ts'
import { type Driver, DriverUnavailable, type Pod, PodGone } from '../../../workers/drivers/driver.ts'
import { eventually, patient } from '../../support/eventually.ts'
import { collect, run, shell, untilReady } from '../processes.ts'
import { newSandboxId, ofNobody } from '../requests.ts'
import type { Contract } from './parts.ts'

export function describePods(contract: Contract): void {
  describe('pods', () => {
    let driver: Driver
    let pod: Pod
    let image: string
    beforeAll(() => {
      ;({ driver, image, pod } = contract.opened())
    })
    const { names, find, createWarmPod } = inspectPods(contract)

    test('a driver finds an existing pod again', async () => {
      await driver.ping()
      expect(pod.name).toBe(podName(pod.sandboxId!))
      expect(await driver.create(contract.request(pod.sandboxId!))).toEqual(pod)
    })

    test('concurrent creates of the same sandbox create only one pod', async () => {
      const sandboxId = newSandboxId()
      const pods = await Promise.all(
        Array.from({ length: 5 }, () => driver.create(contract.request(sandboxId))),
      )
      await driver.delete(pods[0]!)
      expect(new Set(pods.map((made) => made.uid)).size).toBe(1)
    })

    test('a driver lists a live pod with its sandbox id', async () => {
      const listed = (await driver.list()).filter((each) => each.name === pod.name)
      expect(listed).toEqual([{ ...pod, death: undefined }])
    })

    test('a second driver of the same installation can list and use the pod', async () => {
      const second = await contract.open()
      try {
        expect((await second.driver.list()).map((each) => each.uid)).toContain(pod.uid)
        expect(await run(second.driver, pod, shell('echo hello'))).toMatchObject({ stdout: 'hello\n' })
      } finally {
        await second.close()
      }
    })

    test('a deleted pod has no processes, cannot start any and can be deleted again', async () => {
      const doomed = await contract.createReady()
      const process = await driver.start(doomed, shell("trap '' TERM HUP INT; while :; do sleep 1; done"))
      await driver.delete(doomed)
      expect(await names()).not.toContain(doomed.name)
      expect((await process.ended).kind).toBeOneOf(['exited', 'lost'])
      await expect(driver.start(doomed, ['true'])).rejects.toThrow(PodGone)
      await driver.delete(doomed)
      await driver.delete({ name: doomed.name })
    })

    test("a driver repeats the caller's readiness check until the pod can be used", async () => {
      const made = await driver.create(contract.request(newSandboxId()))
      let tries = 0
      const trial = async () => {
        tries += 1
        const result = await run(driver, made, shell('echo tried')).catch((error) => {
          throw new DriverUnavailable('not yet', { cause: error })
        })
        if (tries === 1) throw new DriverUnavailable('once more')
        return result
      }
      await driver.ready(made, AbortSignal.timeout(patient(60_000)), trial)
      await driver.delete(made)
      expect(tries).toBeGreaterThan(1)
    })

    test('a driver stops an endless readiness check when the caller aborts it', async () => {
      const stop = new AbortController()
      const ready = driver.ready(pod, stop.signal, () => new Promise(() => {}))
      stop.abort(new Error('called off'))
      await expect(ready).rejects.toThrow('called off')
    })

    test('a driver does not delete a pod if the uid in the request does not match', async () => {
      await driver.delete({ name: pod.name, uid: randomUUID() })
      expect(await run(driver, pod, shell('echo alive'))).toMatchObject({ stdout: 'alive\n' })
    })

    test('a sandbox that is deleted and created again gets a new pod', async () => {
      const first = await contract.createReady()
      await run(driver, first, shell('echo old > /workspace/left'))
      await driver.delete(first)
      const second = await contract.createReady(first.sandboxId!)
      const left = await run(driver, second, shell('cat /workspace/left'))
      await driver.delete(first)
      expect(await names()).toContain(second.name)
      await driver.delete(second)
      expect(second.uid).not.toBe(first.uid)
      expect(left.code).not.toBe(0)
    })

    test('a driver rejects the start of a process in a pod that never existed', async () => {
      await expect(driver.start({ name: podName(newSandboxId()) }, ['true'])).rejects.toThrow(PodGone)
    })

    describe('without a sandbox', () => {
      test('a warm pod can be assigned to a sandbox twice and keeps its processes', async () => {
        const warm = await createWarmPod()
        expect(await find(warm)).toEqual({ ...warm, sandboxId: undefined, death: undefined })
        const waiting = await driver.start(warm, shell('read -r word; echo "$word"'))
        const sandboxId = newSandboxId()
        await driver.assign(warm, { sandboxId, deadlineSeconds: 300 })
        await driver.assign(warm, { sandboxId, deadlineSeconds: 300 })
        expect(await find(warm)).toEqual({ ...warm, sandboxId, death: undefined })
        waiting.stdin.end('still here\n')
        expect(String(await collect(waiting.stdout))).toBe('still here\n')
        const another = { name: warm.name, uid: randomUUID() }
        await expect(driver.assign(another, { sandboxId, deadlineSeconds: 1 })).rejects.toThrow(PodGone)
        expect(await find(warm)).toMatchObject({ sandboxId })
        await driver.delete(warm)
        await expect(driver.assign(warm, { sandboxId, deadlineSeconds: 1 })).rejects.toThrow(PodGone)
      })

      test('warm pods have the same fingerprint only if they have the same settings', () => {
        const print = (deadlineSeconds: number) => driver.fingerprint({ image, deadlineSeconds })
        expect(print(600)).toBe(print(600))
        expect(print(600)).not.toBe(print(601))
      })
    })
  })
}

export function describeDeadlines(contract: Contract): void {
  describe('pods at their deadline', { concurrent: true }, () => {
    let driver: Driver
    beforeAll(() => {
      ;({ driver } = contract.opened())
    })
    const { names, find, createWarmPod } = inspectPods(contract)

    test('a pod ends at its deadline even if the driver that created it has been closed', async () => {
      const other = await contract.open()
      const doomed = await other.driver.create(contract.request(newSandboxId(), 15))
      await untilReady(other.driver, doomed)
      await other.close()
      const isDead = async () => {
        const found = await find(doomed)
        return !found || found.death !== undefined
      }
      expect(await isDead()).toBe(false)
      await eventually(isDead, 60_000)
      const found = await find(doomed)
      if (found) expect(found.death?.reason).toBe('expired')
      await expect(driver.start(doomed, ['true'])).rejects.toThrow(PodGone)
      await driver.delete(doomed)
      expect(await names()).not.toContain(doomed.name)
    })

    test('a warm pod ends at its assigned deadline even if the driver that assigned it has been closed', async () => {
      const other = await contract.open()
      const warm = await createWarmPod()
      await other.driver.assign(warm, { sandboxId: newSandboxId(), deadlineSeconds: 15 })
      await other.close()
      await eventually(async () => !(await find(warm)) || (await find(warm))?.death !== undefined, 60_000)
      const found = await find(warm)
      if (found) expect(found.death?.reason).toBe('expired')
      await expect(driver.assign(warm, { sandboxId: newSandboxId(), deadlineSeconds: 2 })).rejects.toThrow(
        PodGone,
      )
      await driver.delete(warm)
    })
  })
}

function inspectPods({ opened }: Contract) {
  const list = () => opened().driver.list()
  return {
    names: async () => (await list()).map((each) => each.name),
    find: async ({ uid }: Pod) => (await list()).find((each) => each.uid === uid),
    async createWarmPod() {
      const { driver, image } = opened()
      const made = await driver.create({ ...ofNobody(), image, deadlineSeconds: 600 })
      await untilReady(driver, made)
      return made
    },
  }
}
