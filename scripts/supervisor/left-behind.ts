/**
 * What a stack has started, written down in `.data/`. When its supervisor and its watchdog are both killed, the next
 * start ends what they left: it would hold the ports and the data.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { identify, isAlive, type ProcessId } from '../../workers/drivers/local/process-id.ts'
import { signalGroup } from '../services/service.ts'
import type { Kind, Watchdog } from './watchdog.ts'

type Started = ProcessId & { kind: Kind }

/** Milliseconds that a database has to write its data. */
const graceMs = 5_000

const fileIn = (data: string) => join(data, 'started.json')

/** @returns the watchdog, which also writes down what it guards */
export function writeDown(data: string, watchdog: Watchdog): Watchdog {
  const started = new Map<number, Started>()
  const write = () => {
    const path = fileIn(data)
    writeFileSync(`${path}.new`, JSON.stringify([...started.values()]), { mode: 0o600 })
    renameSync(`${path}.new`, path)
  }
  return {
    ...watchdog,
    guard(kind, pid) {
      watchdog.guard(kind, pid)
      const id = identify(pid)
      if (id) started.set(pid, { ...id, kind })
      write()
    },
    forget(pid) {
      watchdog.forget(pid)
      if (started.delete(pid)) write()
    },
  }
}

/** Ends what an earlier stack left, applications first. @returns how many process groups that were */
export async function endLeftBehind(data: string): Promise<number> {
  const left = readStarted(data).filter(isAlive)
  const of = (kind: Kind) => left.filter((one) => one.kind === kind)
  for (const { pid } of of('application')) signalGroup(pid, 'SIGKILL')
  for (const { pid } of of('database')) signalGroup(pid, 'SIGINT')
  const end = performance.now() + graceMs
  while (left.some(isAlive)) {
    if (performance.now() > end) for (const one of left.filter(isAlive)) signalGroup(one.pid, 'SIGKILL')
    await sleep(20)
  }
  return left.length
}

function readStarted(data: string): Started[] {
  try {
    return JSON.parse(readFileSync(fileIn(data), 'utf8'))
  } catch {
    // There was no earlier one, or its file was cut short.
    return []
  }
}
