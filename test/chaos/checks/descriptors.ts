import { readdirSync } from 'node:fs'
import type { Process } from '../../world/process.ts'

/** Files, sockets and the like that a process has open. */
export const countDescriptors = ({ pid }: Pick<Process, 'pid'>): number =>
  readdirSync(`/proc/${pid}/fd`).length
