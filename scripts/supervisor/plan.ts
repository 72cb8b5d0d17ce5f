/** Plans which processes to start, and on which ports. */
import getPort, { portNumbers } from 'get-port'
import type { StackSettings } from './stack-settings.ts'

type Setting = 'PORT' | 'INTERNAL_PORT' | 'RPC_PORT'

/**
 * @param say reports each default port that was replaced
 * @returns each process with its name, `worker`, or `worker.2` of several
 * @throws a message for the terminal when a port that the user chose is not free
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
  const { host, internalHost, ports } = settings
  const countOf = (wanted: string) => processes.filter(({ kind }) => kind === wanted).length
  const counts = { PORT: countOf('api'), INTERNAL_PORT: processes.length, RPC_PORT: countOf('worker') }
  const chosen: Record<Setting, number[]> = { PORT: [], INTERNAL_PORT: [], RPC_PORT: [] }
  // The ports that the user chose first, so that no default takes them.
  const order = (Object.keys(counts) as Setting[]).sort(
    (a, b) => Number(ports[b].isSet) - Number(ports[a].isSet),
  )
  for (const setting of order) {
    const on = setting === 'PORT' ? host : internalHost
    chosen[setting] = await choosePorts({ setting, host: on, ...ports[setting], count: counts[setting] }, say)
  }
  return processes.map((planned, index) => ({
    ...planned,
    /** Every process has a separate internal port; the APIs also listen for clients, the workers for calls. */
    ports: {
      INTERNAL_PORT: String(chosen.INTERNAL_PORT[index]),
      ...(planned.kind === 'api' && { PORT: String(chosen.PORT.shift()) }),
      ...(planned.kind === 'worker' && { RPC_PORT: String(chosen.RPC_PORT.shift()) }),
    },
  }))
}

interface PortNeed {
  setting: Setting
  host: string
  /** The first one; 0 takes any that are free. */
  first: number
  /** Whether the user chose the first one. If not, it is a default, and other free ports will do. */
  isSet: boolean
  count: number
}

async function choosePorts({ setting, host, first, isSet, count }: PortNeed, say: (line: string) => void) {
  const ports: number[] = []
  for (let wanted = first; ports.length < count; ) {
    // getPort returns no port twice.
    const port = await getPort({ host, port: wanted === 0 ? 0 : portNumbers(wanted, 65_535) })
    if (wanted !== 0 && port !== wanted) {
      const problem = `Port ${wanted} on ${host} is not free`
      if (isSet) throw new Error(`${problem}. Take another one:\n  ${setting}=${port} npm start`)
      say(`${problem}: ${setting} is ${port}.`)
    }
    ports.push(port)
    if (wanted !== 0) wanted = port + 1
  }
  return ports
}
