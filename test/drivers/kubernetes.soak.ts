/** The contract of drivers on a cluster, in the default image of sandboxes. */
import { describeOnCluster } from './contract/on-cluster.ts'

describeOnCluster('debian')
