/** Context shared by all parts of the contract. */
import type { Driver, Pod, PodRequest } from '../../../workers/drivers/driver.ts'

export interface OpenDriver {
  driver: Driver
  image: string
  close(): Promise<void>
}

export interface Contract {
  /** Opens another driver of the same installation. */
  open(): Promise<OpenDriver>
  /** The driver under test, and a shared sandbox. Only available while tests run. */
  opened(): OpenDriver & { pod: Pod }
  request(sandboxId: string, deadlineSeconds?: number): PodRequest
  createReady(sandboxId?: string): Promise<Pod>
  /** False in the gate on a cluster, which skips memory limits and code outside the driver. */
  isWhole: boolean
  /** A value in the driver's environment that must not reach sandboxes. */
  hostSecret: string
}
