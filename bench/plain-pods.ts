/** Baseline for creation: runs `kubectl run` and waits for the pod. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node'
import { undoneAnyway } from './signals.ts'

export interface PlainPods extends AsyncDisposable {
  /** How pods are created, as shown on the page. */
  how: string
  start(name: string): Promise<void>
  remove(name: string): Promise<void>
}

const run = promisify(execFile)

/**
 * Creates a namespace, which is deleted at the end. Without kubectl, uses the client library.
 * @param kubeconfig an administrator's kubeconfig
 */
export async function openPlainPods(kubeconfig: string, image: string): Promise<PlainPods> {
  const namespace = `sandlot-bench-plain-${randomBytes(3).toString('hex')}`
  const config = new KubeConfig()
  config.loadFromFile(kubeconfig)
  const api = config.makeApiClient(CoreV1Api)
  await api.createNamespace({ body: { metadata: { name: namespace } } })
  const made = (await hasKubectl())
    ? byKubectl(kubeconfig, namespace, image)
    : byLibrary(api, namespace, image)
  return {
    ...made,
    [Symbol.asyncDispose]: undoneAnyway(() => api.deleteNamespace({ name: namespace })),
  }
}

const kubectl = process.env.KUBECTL ?? 'kubectl'
const command = ['/bin/sh', '-c', 'sleep 1800']

const hasKubectl = () =>
  run(kubectl, ['version', '--client']).then(
    () => true,
    () => false,
  )

function byKubectl(kubeconfig: string, namespace: string, image: string) {
  const call = (...args: string[]) =>
    run(kubectl, ['--kubeconfig', kubeconfig, '--namespace', namespace, ...args])
  const pull = ['--image-pull-policy', 'IfNotPresent']
  return {
    how: '`kubectl run` and `kubectl wait --for=condition=Ready`',
    async start(name: string) {
      await call('run', name, `--image=${image}`, ...pull, '--restart=Never', '--command', '--', ...command)
      await call('wait', '--for=condition=Ready', '--timeout=120s', `pod/${name}`)
    },
    remove: async (name: string) => void (await call('delete', 'pod', name, '--grace-period=1')),
  }
}

function byLibrary(api: CoreV1Api, namespace: string, image: string) {
  const isReady = async (name: string) => {
    const { status } = await api.readNamespacedPod({ namespace, name })
    return status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')
  }
  const isGone = (name: string) =>
    api.readNamespacedPod({ namespace, name }).then(
      () => false,
      () => true,
    )
  return {
    how: 'a pod created by @kubernetes/client-node and polled until it is Ready (kubectl was not available)',
    async start(name: string) {
      const main = { name: 'main', image, imagePullPolicy: 'IfNotPresent', command }
      const spec = { containers: [main], restartPolicy: 'Never' }
      await api.createNamespacedPod({ namespace, body: { metadata: { name }, spec } })
      while (!(await isReady(name))) await sleep(20)
    },
    async remove(name: string) {
      await api.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 1 })
      while (!(await isGone(name))) await sleep(50)
    },
  }
}
