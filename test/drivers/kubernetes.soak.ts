/** The driver contract on a cluster, in the default sandbox image. */
import { describeOnCluster } from './contract/on-cluster.ts'

describeOnCluster('debian')
