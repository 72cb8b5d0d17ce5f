/** What the parts of the contract have in hand. */
import type { Driver, Pod, PodRequest } from '../../../workers/drivers/driver.ts'

export interface OpenDriver {
  driver: Driver
  image: string
  close(): Promise<void>
}

/** What each part of the suite works with. */
export interface Contract {
  /** One more driver of the same installation, as one more worker would have. */
  open(): Promise<OpenDriver>
  /** The driver that the suite is about, and one sandbox that most tests share: there once the tests run. */
  opened(): OpenDriver & { pod: Pod }
  request(sandboxId: string, deadlineSeconds?: number): PodRequest
  createReady(sandboxId?: string, deadlineSeconds?: number): Promise<Pod>
  /** False in the gate on a cluster, which leaves out what the driver has no part in, and what bounds memory. */
  isWhole: boolean
  /** Stands in the environment of the process that runs the driver. */
  hostSecret: string
}
