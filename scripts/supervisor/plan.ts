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
  const apis = processes.filter(({ kind }) => kind === 'api').length
  const { host, internalHost, port, internalPort } = settings
  const ports = await claimPorts({ setting: 'PORT', host, first: port, count: apis })
  const internal = await claimPorts({
    setting: 'INTERNAL_PORT',
    host: internalHost,
    first: internalPort,
    count: processes.length,
  })
  return processes.map((planned, index) => ({
    ...planned,
    /** Every process listens on an internal port of its own; the APIs also for clients. */
    ports: {
      INTERNAL_PORT: String(internal[index]),
      ...(planned.kind === 'api' && { PORT: String(ports.shift()) }),
    },
  }))
}
