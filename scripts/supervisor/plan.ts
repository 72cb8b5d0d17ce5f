/** Which processes to start, and on which ports. */
import { claimPorts, type PortNeed } from './ports.ts'
import type { StackSettings } from './stack-settings.ts'

/**
 * @param say reports each port that another program made it choose
 * @returns each with its name, `worker`, or `worker.2` of several
 * @throws a message for the terminal when a port that the user chose is taken
 */
export async function planProcesses(
  commands: Map<string, string>,
  settings: Pick<StackSettings, 'counts' | 'host' | 'internalHost' | 'ports'>,
  say: (line: string) => void,
) {
  const processes = [...commands].flatMap(([kind, command]) => {
    const count = settings.counts.get(kind) ?? 1
    return Array.from({ length: count }, (_, index) => ({
      kind,
      command,
      name: count === 1 ? kind : `${kind}.${index + 1}`,
    }))
  })
  const countOf = (wanted: string) => processes.filter(({ kind }) => kind === wanted).length
  const { host, internalHost, ports } = settings
  const needs: PortNeed[] = [
    { setting: 'PORT', host, ...ports.PORT, count: countOf('api') },
    { setting: 'INTERNAL_PORT', host: internalHost, ...ports.INTERNAL_PORT, count: processes.length },
    { setting: 'CALLS_PORT', host: internalHost, ...ports.CALLS_PORT, count: countOf('worker') },
  ]
  const claimed = { PORT: [] as number[], INTERNAL_PORT: [] as number[], CALLS_PORT: [] as number[] }
  // Ports that the user chose are claimed first, so that no default takes them.
  for (const need of needs.toSorted((a, b) => Number(b.isSet) - Number(a.isSet)))
    claimed[need.setting] = await claimPorts(need, say)
  return processes.map((planned, index) => ({
    ...planned,
    /** Every process has a separate internal port; the APIs also listen for clients, the workers for calls. */
    ports: {
      INTERNAL_PORT: String(claimed.INTERNAL_PORT[index]),
      ...(planned.kind === 'api' && { PORT: String(claimed.PORT.shift()) }),
      ...(planned.kind === 'worker' && { CALLS_PORT: String(claimed.CALLS_PORT.shift()) }),
    },
  }))
}
