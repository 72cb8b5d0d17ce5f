/** Baseline for creation: runs `kubectl run` and waits for the pod. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node'
import { undoneAnyway } from './signals.ts'

export interface PlainPods extends AsyncDisposable {
  start(name: string): Promise<void>
  remove(name: string): Promise<void>
}

const run = promisify(execFile)
const kubectl = process.env.KUBECTL ?? 'kubectl'
const command = ['/bin/sh', '-c', 'sleep 1800']

/**
 * Creates a namespace, which is deleted at the end. Requires kubectl.
 * @param kubeconfig an administrator's kubeconfig
 */
export async function openPlainPods(kubeconfig: string, image: string): Promise<PlainPods> {
  const namespace = `sandlot-bench-plain-${randomBytes(3).toString('hex')}`
  const config = new KubeConfig()
  config.loadFromFile(kubeconfig)
  const api = config.makeApiClient(CoreV1Api)
  await api.createNamespace({ body: { metadata: { name: namespace } } })
  const call = (...args: string[]) =>
    run(kubectl, ['--kubeconfig', kubeconfig, '--namespace', namespace, ...args])
  const pull = ['--image-pull-policy', 'IfNotPresent']
  return {
    async start(name) {
      await call('run', name, `--image=${image}`, ...pull, '--restart=Never', '--command', '--', ...command)
      await call('wait', '--for=condition=Ready', '--timeout=120s', `pod/${name}`)
    },
    remove: async (name) => void (await call('delete', 'pod', name, '--grace-period=1')),
    [Symbol.asyncDispose]: undoneAnyway(() => api.deleteNamespace({ name: namespace })),
  }
}
