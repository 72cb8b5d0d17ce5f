/** Faults that affect API and worker processes: SIGKILL, freeze, SIGTERM, wrong clock. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Instance } from '../stage.ts'
import { chosen, during, type Plan } from './plan.ts'

const minuteMs = 60_000
/** Maximum time to stop a process. It exceeds the 20 s drain after SIGTERM. */
const stopMs = 40_000

/** Approximate start time in milliseconds. */
const startMs = 1_000

const pickInstance = (instances: readonly Instance[], chance: number, kind?: Instance['kind']): Instance =>
  chosen(
    instances.filter((instance) => kind === undefined || instance.kind === kind),
    chance,
  )!

const freeze: Plan = (scene, fault) => {
  const instance = pickInstance(scene.stage.instances, fault.target)
  return during(
    instance.name,
    () => instance.process.signal('SIGSTOP'),
    () => instance.process.signal('SIGCONT'),
  )(scene, fault)
}

const kill =
  (kind: Instance['kind']): Plan =>
  ({ stage }, { target, lastsMs }) => {
    const instance = pickInstance(stage.instances, target, kind)
    return {
      target: instance.name,
      async act() {
        instance.isBeingEnded = true
        await instance.process.kill()
        await sleep(lastsMs)
        await stage.replace(instance)
      },
    }
  }

export const processFaults = {
  'a process is frozen briefly': freeze,
  'a process is frozen past its locks': freeze,
  'an API is killed': kill('api'),
  'a worker is killed': kill('worker'),
  'a start is frozen': ({ stage }, { target, chance, lastsMs }) => {
    const instance = pickInstance(stage.instances, target)
    return {
      target: instance.name,
      async act() {
        instance.isBeingEnded = true
        await instance.process.kill()
        await stage.replace(instance, async (process) => {
          await sleep(chance * startMs)
          process.signal('SIGSTOP')
          await sleep(lastsMs)
          process.signal('SIGCONT')
        })
      },
    }
  },
  'a process receives SIGTERM': ({ stage, recorder }, { target }) => {
    const instance = pickInstance(stage.instances, target)
    return {
      target: instance.name,
      async act() {
        instance.isBeingEnded = true
        const { process } = instance
        const stopped = Promise.race([
          process.stop().then(() => undefined),
          sleep(stopMs, `it is still running after ${stopMs} ms`),
        ])
        const problem = await stopped.catch((error) => String(error))
        if (problem)
          recorder.wrong('a process did not exit with code 0 after SIGTERM', {
            instance: instance.name,
            problem,
          })
        await process.kill()
        await stage.replace(instance)
      },
    }
  },
  'a clock is moved': (scene, fault) => {
    const instance = pickInstance(scene.stage.instances, fault.target)
    const byMs = Math.round((fault.chance * 2 - 1) * 10 * minuteMs)
    const target = `clock of ${instance.name}`
    return during(
      target,
      () => instance.setClock(byMs),
      () => instance.setClock(0),
    )(scene, fault)
  },
} satisfies Record<string, Plan>
