/** The contract of drivers on a cluster, in the image that sandboxes have unless told. */
import { describeOnCluster } from './contract/on-cluster.ts'

describeOnCluster('debian')
