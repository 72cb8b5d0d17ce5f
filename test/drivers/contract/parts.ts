/** Context that the parts of the contract share. */
import type { Driver, Pod, PodRequest } from '../../../workers/drivers/driver.ts'

export interface OpenDriver {
  driver: Driver
  image: string
  close(): Promise<void>
}

/** Values that each part of the suite uses. */
export interface Contract {
  /** Opens another driver of the same installation, like another worker. */
  open(): Promise<OpenDriver>
  /** The driver under test, and a sandbox that most tests share. Available once the tests run. */
  opened(): OpenDriver & { pod: Pod }
  request(sandboxId: string, deadlineSeconds?: number): PodRequest
  createReady(sandboxId?: string, deadlineSeconds?: number): Promise<Pod>
  /** False in the gate on a cluster, which skips tests of memory limits and of code outside the driver. */
  isWhole: boolean
  /** A value in the environment of the process that runs the driver. */
  hostSecret: string
}
