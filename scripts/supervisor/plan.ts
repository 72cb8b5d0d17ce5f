/** Which processes to start, and on which ports. */
import { claimPorts } from './ports.ts'
import type { StackSettings } from './stack-settings.ts'

/**
 * @returns each with its name, `worker`, or `worker.2` of several
 * @throws in words for the terminal when a port is taken
 */
export async function planProcesses(commands: Map<string, string>, settings: StackSettings) {
  const processes = [...commands].flatMap(([kind, command]) => {
    const count = settings.counts.get(kind) ?? 1
    return Array.from({ length: count }, (_, index) => ({
      kind,
      command,
      name: count === 1 ? kind : `${kind}.${index + 1}`,
    }))
  })
  const countOf = (wanted: string) => processes.filter(({ kind }) => kind === wanted).length
  const { host, internalHost, port, internalPort, callsPort } = settings
  const ports = await claimPorts({ setting: 'PORT', host, first: port, count: countOf('api') })
  const internal = await claimPorts({
    setting: 'INTERNAL_PORT',
    host: internalHost,
    first: internalPort,
    count: processes.length,
  })
  const calls = await claimPorts({
    setting: 'CALLS_PORT',
    host: internalHost,
    first: callsPort,
    count: countOf('worker'),
  })
  return processes.map((planned, index) => ({
    ...planned,
    /** Every process listens on an internal port of its own; the APIs also for clients, the workers for calls. */
    ports: {
      INTERNAL_PORT: String(internal[index]),
      ...(planned.kind === 'api' && { PORT: String(ports.shift()) }),
      ...(planned.kind === 'worker' && { CALLS_PORT: String(calls.shift()) }),
    },
  }))
}
