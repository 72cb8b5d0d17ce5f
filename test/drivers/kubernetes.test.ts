/** The contract of drivers on a cluster, in the image with the smallest tools. */
import { describeOnCluster } from './contract/on-cluster.ts'

describeOnCluster('busybox')
