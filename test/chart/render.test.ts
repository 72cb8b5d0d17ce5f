/** Skipped when helm is not installed. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  loadYaml,
  type V1Deployment,
  type V1PodTemplateSpec,
  type V1RoleBinding,
} from '@kubernetes/client-node'
import { structuredPatch } from 'diff'
import { describe, expect, test } from 'vitest'
import { root } from '../../scripts/root.mjs'
import { buildPolicies, type Egress } from '../../workers/drivers/kubernetes/policies.ts'
import { chart, hasHelm, installations, type Rendered, render, template, valuesOf } from './helm.ts'

const set = (...values: string[]) => [
  '--set',
  'secretName=keys',
  ...values.flatMap((value) => ['--set', value]),
]
const find = <T = Rendered>(objects: Rendered[], kind: string, name: string) =>
  objects.find((object) => object.kind === kind && object.metadata?.name === name) as T

const snapshotOf = (name: string) => join(root, 'test/chart/golden', name)

/** Values that rename or label every object. They would hide the other differences. */
const withoutRenames = ['--set', 'nameOverride=,fullnameOverride=,commonLabels=null,global.imageRegistry=']

/** The selector of a component, or all its labels. Nearly every object repeats them. */
const labelsOf =
  /^( +)app\.kubernetes\.io\/name: sandlot\n\1app\.kubernetes\.io\/component: (\w+)\n\1app\.kubernetes\.io\/instance: sandlot\n(\1app\.kubernetes\.io\/version: "[\d.]+"\n\1app\.kubernetes\.io\/managed-by: Helm\n)?/gm

/** Replaces the dashboard, which deploy/chart/dashboard.json contains, and repeated labels with placeholders. */
function templateOf(installation: string): string {
  const { stdout, stderr } = template([...valuesOf(installation), ...withoutRenames])
  expect(stderr).toBe('')
  const dashboard = readFileSync(join(chart, 'dashboard.json'), 'utf8').trim()
  return stdout
    .replace(/^# Source: .*\n/gm, '')
    .replace(dashboard.replaceAll(/^/gm, '    '), '    # dashboard.json')
    .replace(labelsOf, (_, indent, component, labels) =>
      labels ? `${indent}# labels of ${component}\n` : `${indent}# selector of ${component}\n`,
    )
}

/** Shows added objects in full, changed objects as a patch, and removed objects by name. */
function compareObjects(from: string, to: string): string {
  const before = splitObjects(from)
  const after = splitObjects(to)
  const removed = [...before.keys()].filter((name) => !after.has(name)).map((name) => `# removed: ${name}\n`)
  const changed = [...after].flatMap(([name, text]) => {
    const old = before.get(name)
    if (old === text) return []
    if (old === undefined) return [`# added: ${name}\n${text}`]
    const { hunks } = structuredPatch(name, name, old, text, '', '', { context: 1 })
    return [`# changed: ${name}\n${hunks.map(({ lines }) => `@@\n${lines.join('\n')}\n`).join('')}`]
  })
  return [...removed, ...changed].join('')
}

const splitObjects = (text: string) =>
  new Map(
    text
      .split(/^---\n/m)
      .filter(Boolean)
      .map((part) => [
        [/^kind: .*/m, /^ {2}name: .*/m].map((line) => line.exec(part)![0].replace(/.*: /, '')).join(' '),
        part,
      ]),
  )

test('the chart and the project have the same version', () => {
  const { version, appVersion } = loadYaml<Record<string, string>>(
    readFileSync(join(chart, 'Chart.yaml'), 'utf8'),
  )
  const project = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  expect({ version, appVersion }).toEqual({ version: project.version, appVersion: project.version })
})

describe.skipIf(!hasHelm)('the chart, by helm', () => {
  // Run `npm test -- test/chart -u` to update the snapshots, then review the changes.
  test('the chart rendered with the minimal values matches the snapshot', async () => {
    await expect(templateOf('minimal')).toMatchFileSnapshot(snapshotOf('minimal.yaml'))
  })

  test.each(installations.filter((installation) => installation !== 'minimal'))(
    'with %s, the rendered chart differs from its base exactly as the snapshot shows',
    async (installation) => {
      const base = installation === 'knobs' ? 'quickstart' : 'minimal'
      const differences = compareObjects(templateOf(base), templateOf(installation))
      await expect(differences).toMatchFileSnapshot(snapshotOf(`${installation}.diff`))
    },
  )

  test.each(installations)('helm lint accepts the chart with the values of %s', (installation) => {
    const { status, stdout } = spawnSync('helm', ['lint', '--strict', chart, ...valuesOf(installation)], {
      encoding: 'utf8',
    })
    expect(stdout).not.toMatch(/WARNING|ERROR/)
    expect(status).toBe(0)
  })

  test('helm lint accepts the default values', () => {
    const { status, stdout } = spawnSync('helm', ['lint', '--strict', chart], { encoding: 'utf8' })
    expect(stdout).toContain('0 chart(s) failed')
    expect(stdout).not.toContain('[INFO]')
    expect(status).toBe(0)
  })

  test('overridden names, labels, images and pod options apply to every process', () => {
    const objects = render(valuesOf('knobs'))
    for (const { metadata } of objects) expect(metadata!.labels!.team).toBe('a')
    const ofRelease = objects.filter(({ metadata }) => metadata!.namespace === 'sandlot-system')
    for (const { metadata } of ofRelease) expect(metadata!.name).toMatch(/^team-a(-|$)/)
    const text = JSON.stringify(ofRelease)
    expect(text).not.toMatch(/sandlot-(api|worker|postgres|redis)/)
    expect(text).not.toContain('"app.kubernetes.io/name":"sandlot"')
    expect(text).not.toMatch(/"image":"(?!mirror\.example\.com\/)/)
    const { subjects } = find<V1RoleBinding>(objects, 'RoleBinding', 'sandlot-worker')
    expect(subjects!.map(({ name }) => name)).toEqual(['team-a-worker'])
    const policy = find(objects, 'ValidatingAdmissionPolicy', 'sandlot-sandlot-sandboxes-update')
    expect(JSON.stringify(policy)).toContain('system:serviceaccount:sandlot-system:team-a-worker')
    for (const name of ['api', 'worker']) {
      const { metadata, spec } = find<V1Deployment>(objects, 'Deployment', `team-a-${name}`).spec!.template
      expect(metadata).toMatchObject({
        labels: { 'app.kubernetes.io/name': 'sandboxes', team: 'a', tier: 'control' },
        annotations: { 'kubectl.kubernetes.io/default-container': name, 'example.com/scrape': 'yes' },
      })
      expect(spec).toMatchObject({
        serviceAccountName: `team-a-${name}`,
        nodeSelector: { pool: 'control' },
        tolerations: [{ key: 'control' }],
        affinity: { nodeAffinity: {} },
        priorityClassName: 'high',
        volumes: [{ name: 'extra' }],
      })
      expect(spec!.topologySpreadConstraints!.map(({ topologyKey }) => topologyKey)).toEqual(['rack'])
      const [container] = spec!.containers
      expect(container!.volumeMounts).toEqual([{ name: 'extra', mountPath: '/extra' }])
      expect(container!.env).toContainEqual({ name: 'NODE_OPTIONS', value: '--trace-warnings' })
      const [password] = container!.env!.filter((each) => each.name === 'DATABASE_PASSWORD')
      expect(password!.valueFrom!.secretKeyRef).toEqual({ name: 'vault-keys', key: 'postgres-password' })
      const account = find(objects, 'ServiceAccount', `team-a-${name}`)
      expect(account.metadata!.annotations).toEqual({ 'example.com/role': 'reader' })
      const budget = find(objects, 'PodDisruptionBudget', `team-a-${name}`)
      expect(budget.spec).toMatchObject({ minAvailable: 1 })
      expect(budget.spec).not.toHaveProperty('maxUnavailable')
    }
    const service = find(objects, 'Service', 'team-a-api')
    expect(service.spec).toMatchObject({ type: 'LoadBalancer' })
    expect(service.metadata!.annotations).toEqual({ 'example.com/internal': 'true' })
    for (const name of ['postgres', 'redis']) {
      const { spec } = find<V1Deployment>(objects, 'StatefulSet', `team-a-${name}`).spec!.template
      expect(spec).toMatchObject({ nodeSelector: { pool: 'databases' }, priorityClassName: 'high' })
    }
  })

  test.each<{ egress: Egress; own: string[] }>([
    { egress: 'internet', own: [] },
    { egress: 'internet', own: ['203.0.113.0/24', '2a00:1::/32'] },
    { egress: 'none', own: [] },
  ])('the chart isolates sandboxes as `npm run cluster` does: $egress, $own', ({ egress, own }) => {
    const ranges = own.length > 0 ? [`sandboxes.ownRanges={${own.join(',')}}`] : []
    const objects = render(set('sandboxes.namespace=pods', `sandboxes.egress=${egress}`, ...ranges))
    const policies = buildPolicies('pods', egress, own, 'sandlot-system')
    const walls = objects.filter(
      ({ kind, metadata }) => metadata!.namespace === 'pods' && /^(NetworkPolicy|Role)/.test(kind!),
    )
    expect(walls).toHaveLength(policies.length - 2)
    for (const made of policies) {
      const rendered = structuredClone(find(objects, made.kind!, made.metadata!.name!))
      expect(rendered.metadata!.labels!['app.kubernetes.io/managed-by']).toBe('Helm')
      // This label names the tool that last created the object.
      rendered.metadata!.labels!['app.kubernetes.io/managed-by'] = 'sandlot'
      expect(rendered).toEqual(JSON.parse(JSON.stringify(made)))
    }
  })

  test('the chart gives each process only its own keys', () => {
    const objects = render(valuesOf('production'))
    const podOf = (name: string) => find<V1Deployment>(objects, 'Deployment', name).spec!.template.spec!
    const secretsOf = (name: string) =>
      podOf(name).containers[0]!.env!.flatMap((each) => each.valueFrom?.secretKeyRef?.key ?? [])
    const databases = ['DATABASE_PASSWORD', 'REDIS_PASSWORD']
    expect(secretsOf('sandlot-api')).toEqual([...databases, 'JWT_SECRET', 'SECRETS_PUBLIC_KEY', 'RPC_KEY'])
    expect(secretsOf('sandlot-worker')).toEqual([...databases, 'SECRETS_KEY', 'RPC_KEY'])
    expect(podOf('sandlot-api').automountServiceAccountToken).toBe(false)
    const { subjects } = find<V1RoleBinding>(objects, 'RoleBinding', 'sandlot-worker')
    expect(subjects).toEqual([
      { kind: 'ServiceAccount', name: 'sandlot-worker', namespace: 'sandlot-system' },
    ])
  })

  test('each pod in the chart uses image.pullSecrets to pull its image', () => {
    const pods = ['true', 'false'].flatMap((quickstart) =>
      render(set(`quickstart.enabled=${quickstart}`, 'image.pullSecrets={registry}'))
        .map(({ spec }) => (spec as { template?: V1PodTemplateSpec } | undefined)?.template?.spec)
        .filter((pod) => pod !== undefined),
    )
    // Two API and two worker pods, PostgreSQL, Redis, and the migration.
    expect(pods.map((pod) => pod.imagePullSecrets)).toEqual(Array(7).fill([{ name: 'registry' }]))
  })

  test.each([
    { words: 'secretName is empty', args: [] },
    { words: "'databse' not allowed", args: set('databse.url=x') },
    { words: '/database/url', args: set('database.url=postgresql://sandlot:postgres@db/sandlot') },
    { words: '/redis/url', args: set('redis.url=redis://:redis@redis:6379') },
    { words: '/image/tag', args: set('image.tag=latest') },
    { words: '/image/digest', args: set('image.digest=sha256:abc') },
    { words: '/hosts/0', args: set('hosts={*}') },
    { words: '/trustedProxies/0', args: set('trustedProxies={0.0.0.0/0}') },
    { words: "/settings.*'QUOTA' not allowed", args: set('settings.QUOTA=1') },
    { words: "/settings.*'JWT_SECRET' not allowed", args: set('settings.JWT_SECRET=guessed') },
    { words: "/settings.*'SANDBOX_PIDS' not allowed", args: set('settings.SANDBOX_PIDS=16') },
    { words: '/settings/LOG_LEVEL', args: set('settings.LOG_LEVEL=loud') },
    { words: '/sandboxes/limits/cpu', args: set('sandboxes.limits.cpu=lots') },
    { words: '/sandboxes/egress', args: set('sandboxes.egress=all') },
    { words: '/sandboxes/maxSeconds', args: set('sandboxes.maxSeconds=86401') },
    { words: '/sandboxes/nodeSelector', args: set('sandboxes.nodeSelector=pool') },
    { words: '/sandboxes/tolerations/0/effect', args: set('sandboxes.tolerations[0].effect=Schedule') },
    { words: "'keys' not allowed", args: set('sandboxes.tolerations[0].keys=pool') },
    { words: "'nodeAfinity' not allowed", args: set('sandboxes.affinity.nodeAfinity.x=y') },
    { words: '/sandboxes/priorityClassName', args: set('sandboxes.priorityClassName=Low') },
    { words: '/sandboxes/imagePullSecrets/0', args: set('sandboxes.imagePullSecrets[0].name=registry') },
    { words: '/sandboxes/dns/0', args: set('sandboxes.dns={dns.example.com}') },
    {
      words: 'sandboxes.maxSeconds is below settings.SANDBOX_MAX_SECONDS',
      args: set('sandboxes.maxSeconds=600', 'settings.SANDBOX_MAX_SECONDS=601'),
    },
    { words: '/sandboxes/clusterAdds/tolerations', args: set('sandboxes.clusterAdds.tolerations={*}') },
    { words: 'sandboxes.namespace must differ', args: set('sandboxes.namespace=sandlot-system') },
    { words: 'quickstart.enabled installs', args: set('quickstart.enabled=true', 'redis.url=redis://redis') },
    {
      words: 'Enable only one of them',
      args: set('ingress.enabled=true', 'httpRoute.enabled=true', 'hosts={a.b}'),
    },
    { words: 'hosts is empty', args: set('ingress.enabled=true') },
    { words: 'httpRoute.parentRefs is empty', args: set('httpRoute.enabled=true', 'hosts={a.b}') },
    { words: 'prometheusRule.runbooks is empty', args: set('prometheusRule.enabled=true') },
    { words: '/prometheusRule/runbooks', args: set('prometheusRule.runbooks=docs') },
    { words: 'worker.keda.prometheus is empty', args: set('worker.keda.enabled=true') },
  ])('the chart rejects the values $args and names the invalid value', ({ words, args }) => {
    const { status, stderr } = template(args)
    expect(status).not.toBe(0)
    expect(stderr).toMatch(new RegExp(words))
  })
})
