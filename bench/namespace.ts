/** Creates a separate namespace for a benchmark, with settings for its processes. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node'
import { installCluster } from '../workers/drivers/kubernetes/install.ts'
import { undoneAnyway } from './signals.ts'

export interface Namespace extends AsyncDisposable {
  env: Record<string, string>
}

export async function makeNamespace(kubeconfig: string): Promise<Namespace> {
  const namespace = `sandlot-bench-${randomBytes(3).toString('hex')}`
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-bench-'))
  const admin = new KubeConfig()
  admin.loadFromFile(kubeconfig)
  const remove = undoneAnyway(async () => {
    await admin.makeApiClient(CoreV1Api).deleteNamespace({ name: namespace })
    rmSync(folder, { recursive: true, force: true })
  })
  try {
    const installed = await installCluster({ kubeconfig, namespace, egress: 'internet' })
    const path = join(folder, 'kubeconfig')
    writeFileSync(path, installed.kubeconfig, { mode: 0o600 })
    const env = {
      SANDBOX_DRIVER: 'kubernetes',
      SANDBOX_NAMESPACE: namespace,
      KUBECONFIG: path,
      ...(process.env.SANDBOX_IMAGE ? { SANDBOX_IMAGE: process.env.SANDBOX_IMAGE } : {}),
    }
    return { env, [Symbol.asyncDispose]: remove }
  } catch (error) {
    await remove()
    throw error
  }
}
