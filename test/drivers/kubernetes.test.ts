import { describeOnCluster } from './contract/on-cluster.ts'

describeOnCluster('busybox')
