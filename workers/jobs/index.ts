/** The processor of each job; the compiler asks for every one that shared/platform/jobs.ts names. */
import type { JobName } from '../../shared/platform/jobs.ts'
import { assignPod } from './assign-pod.ts'
import { createPod } from './create-pod.ts'
import { deletePod } from './delete-pod.ts'
import { expire } from './expire.ts'
import type { Processor } from './processor.ts'

export const processors: { [N in JobName]: Processor<N> } = { assignPod, createPod, deletePod, expire }
