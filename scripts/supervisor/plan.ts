import getPort, { portNumbers } from 'get-port'
import type { StackSettings } from './stack-settings.ts'

/**
 * Parses a Procfile.
 * @returns the `release` command, which must run first, and the command for each kind of process
 */
export function parseProcfile(text: string) {
  const entries = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name, command] = /^([\w-]+):\s*(.+)$/.exec(line) ?? []
      if (name === undefined || command === undefined)
        throw new Error(`The Procfile contains an invalid line: "${line}".`)
      return [name, command] as const
    })
  const { release, ...processes } = Object.fromEntries(entries)
  return { release, processes: new Map(Object.entries(processes)) }
}

type Setting = 'PORT' | 'INTERNAL_PORT' | 'RPC_PORT'

/**
 * Chooses ports for the Procfile's processes, and reports each default port that is not free.
 * @returns the processes, named `worker`, or `worker.1`, `worker.2` and so on if there are several
 * @throws a user-facing error if a port set by the user is not free
 */
export async function planProcesses(
  commands: Map<string, string>,
  settings: Pick<StackSettings, 'counts' | 'host' | 'internalHost' | 'ports'>,
  report: (line: string) => void,
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
  // Reserves the user's ports first.
  const order = (Object.keys(counts) as Setting[]).sort(
    (a, b) => Number(ports[b].isSet) - Number(ports[a].isSet),
  )
  for (const setting of order) {
    const on = setting === 'PORT' ? host : internalHost
    chosen[setting] = await choosePorts(
      { setting, host: on, ...ports[setting], count: counts[setting] },
      report,
    )
  }
  return processes.map((planned, index) => ({
    ...planned,
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
  /** Preferred port of the first process. 0 means any free port. */
  first: number
  /** Whether the user has set the port. */
  isSet: boolean
  count: number
}

async function choosePorts({ setting, host, first, isSet, count }: PortNeed, report: (line: string) => void) {
  const ports: number[] = []
  for (let wanted = first; ports.length < count; ) {
    // getPort never returns the same port twice.
    const port = await getPort({ host, port: wanted === 0 ? 0 : portNumbers(wanted, 65_535) })
    if (wanted !== 0 && port !== wanted) {
      const problem = `Port ${wanted} on ${host} is not free`
      if (isSet) throw new Error(`${problem}. Choose a different port:\n  ${setting}=${port} npm start`)
      report(`${problem}. Using ${port} for ${setting} instead.`)
    }
    ports.push(port)
    if (wanted !== 0) wanted = port + 1
  }
  return ports
}
