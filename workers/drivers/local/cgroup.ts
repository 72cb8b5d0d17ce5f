import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { killPid } from './process-id.ts'
import { readText } from './state.ts'

export interface Limits {
  /** Number of processors; may be a fraction. */
  cpu: number
  /** Memory in bytes. */
  memory: number
  pids: number
}

export type Controller = keyof Limits

/** A folder in which control groups can be created. In cgroup v2, a single folder has all controllers. */
export interface CgroupParent {
  version: 1 | 2
  folder: string
  controllers: Controller[]
}

const neededControllers: Controller[] = ['cpu', 'memory', 'pids']
const cpuPeriodUs = 100_000

/**
 * Returns the candidate parent folders for each controller, most preferred first.
 * @param groups the contents of `/proc/self/cgroup`
 * @param mounts the contents of `/proc/self/mounts`
 */
export function listCgroupParents(groups: string, mounts: string): CgroupParent[] {
  const own = groups.split('\n').map((line) => {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    return { controllers: controllers?.split(',') ?? [], path: path ?? '/' }
  })
  return mounts.split('\n').flatMap((line): CgroupParent[] => {
    const [, mountpoint, type, options] = line.split(' ')
    if (!mountpoint || !options) return []
    if (type !== 'cgroup' && type !== 'cgroup2') return []
    const version = type === 'cgroup' ? 1 : 2
    const controllers = neededControllers.filter((name) => version === 2 || options.split(',').includes(name))
    const named = version === 2 ? '' : controllers[0]
    if (named === undefined) return []
    const path = own.find((group) => group.controllers.includes(named))?.path ?? '/'
    // In version 2, only the root group can contain both a process and children with limits. In a
    // version 1 container, the path may belong to another view of the hierarchy.
    return [join(mountpoint, path), mountpoint].map((folder) => ({ version, controllers, folder }))
  })
}

export function findCgroupParents(limits: Limits): CgroupParent[] {
  const found: CgroupParent[] = []
  for (const parent of readParents()) {
    const missing = parent.controllers.filter(
      (controller) => !found.some((other) => other.controllers.includes(controller)),
    )
    if (missing.length === 0 || !existsSync(join(parent.folder, 'cgroup.procs'))) continue
    const usable =
      parent.version === 2 ? missing.filter((controller) => isDelegated(parent, controller)) : missing
    if (usable.length === 0) continue
    const candidate = { ...parent, controllers: usable }
    try {
      removeCgroup(makeCgroup(candidate, `sandlot-trial-${process.pid}`, limits))
      found.push(candidate)
    } catch {
      // The folder is read-only, belongs to another user, or lacks a controller. Another folder may work.
    }
  }
  return found
}

export function makeCgroup(parent: CgroupParent, name: string, limits: Limits): string {
  const folder = join(parent.folder, name)
  mkdirSync(folder, { recursive: true })
  try {
    for (const controller of parent.controllers) {
      for (const [file, value] of Object.entries(limitFiles(parent.version, controller, limits))) {
        const path = join(folder, file)
        // Not every kernel accounts for swap, but the memory limit itself is required.
        if (existsSync(path) || !/sw(ap)?/.test(file)) writeFileSync(path, value)
      }
    }
  } catch (error) {
    removeCgroup(folder)
    throw error
  }
  return folder
}

export function limitFiles(version: 1 | 2, controller: Controller, limits: Limits): Record<string, string> {
  const memory = String(Math.floor(limits.memory))
  const quota = String(Math.max(1000, Math.round(limits.cpu * cpuPeriodUs)))
  if (controller === 'pids') return { 'pids.max': String(limits.pids) }
  if (controller === 'memory') {
    if (version === 2) return { 'memory.max': memory, 'memory.swap.max': '0' }
    return { 'memory.limit_in_bytes': memory, 'memory.memsw.limit_in_bytes': memory }
  }
  if (version === 2) return { 'cpu.max': `${quota} ${cpuPeriodUs}` }
  return { 'cpu.cfs_period_us': String(cpuPeriodUs), 'cpu.cfs_quota_us': quota }
}

export async function killCgroup(folder: string): Promise<void> {
  for (let round = 0; !removeCgroup(folder); round++) {
    const procs = readText(join(folder, 'cgroup.procs')) ?? ''
    for (const pid of procs.split('\n').filter(Boolean)) killPid(Number(pid))
    if (round === 500) throw new Error(`processes in ${folder} did not end`)
    await sleep(2)
  }
}

function removeCgroup(folder: string): boolean {
  try {
    rmdirSync(folder)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

function readParents(): CgroupParent[] {
  try {
    return listCgroupParents(
      readFileSync('/proc/self/cgroup', 'utf8'),
      readFileSync('/proc/self/mounts', 'utf8'),
    )
  } catch {
    return []
  }
}

/**
 * Enables a controller for the control groups in a folder, as cgroup v2 requires. Returns whether it is
 * enabled.
 */
function isDelegated(parent: CgroupParent, controller: Controller): boolean {
  const file = join(parent.folder, 'cgroup.subtree_control')
  const isListed = () => readFileSync(file, 'utf8').trim().split(' ').includes(controller)
  try {
    if (!isListed()) writeFileSync(file, `+${controller}`)
    return isListed()
  } catch {
    return false
  }
}
