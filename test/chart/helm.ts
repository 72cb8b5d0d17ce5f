import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type KubernetesObject, loadAllYaml } from '@kubernetes/client-node'
import { root } from '../../scripts/root.mjs'
import { findProgram } from '../../scripts/services/find-program.ts'

export const hasHelm = findProgram('helm') !== undefined
export const kubeconform = findProgram('kubeconform')

export const chart = join(root, 'deploy/chart')
export const installations = readdirSync(join(chart, 'ci')).map((file) => file.replace('-values.yaml', ''))
export const valuesOf = (installation: string) => [
  '--values',
  join(chart, 'ci', `${installation}-values.yaml`),
]

export type Rendered = KubernetesObject & Record<string, unknown>

/** @param args for example `--set secretName=keys` */
export function template(args: string[], namespace = 'sandlot-system') {
  const release = ['sandlot', chart, '--namespace', namespace, '--kube-version', '1.34']
  const { status, stdout, stderr } = spawnSync('helm', ['template', ...release, ...args], {
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

export function render(args: string[], namespace?: string): Rendered[] {
  const { status, stdout, stderr } = template(args, namespace)
  if (status !== 0) throw new Error(stderr)
  return (loadAllYaml(stdout) as (Rendered | null)[]).filter((object) => object !== null)
}
