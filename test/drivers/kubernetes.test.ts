/** The driver contract on a cluster, in the smallest image. */
import { describeOnCluster } from './contract/on-cluster.ts'

describeOnCluster('busybox')
