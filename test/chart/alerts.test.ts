/** The chart's alerts and dashboard query existing metrics, and the alerts fire as documented. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dumpYaml } from '@kubernetes/client-node'
import { describe, expect, test } from 'vitest'
import { readPage } from '../../scripts/docs.ts'
import { root } from '../../scripts/root.mjs'
import { findProgram } from '../../scripts/services/find-program.ts'
import { createFaults, openMetrics } from '../../shared/platform/metrics.ts'
import { chart, hasHelm, render } from './helm.ts'

interface Rule {
  alert: string
  record?: string
  expr: string
  annotations: { summary: string; runbook_url: string }
}

const promtool = findProgram('promtool')
const runbooks = 'https://runbooks.example/operations.md'

const rulesOf = () => {
  const on = `secretName=keys,prometheusRule.enabled=true,prometheusRule.runbooks=${runbooks}`
  const rule = render(['--set', on]).find(({ kind }) => kind === 'PrometheusRule')!
  return rule.spec as { groups: { name: string; rules: Rule[] }[] }
}

const alertsOf = () => rulesOf().groups.flatMap(({ rules }) => rules.filter(({ record }) => !record))

async function registered(): Promise<Map<string, Set<string>>> {
  const known = new Map<string, Set<string>>()
  for (const role of ['api', 'worker']) {
    const { registry } = openMetrics(role)
    await registry.metrics()
    for (const { name, type } of await registry.getMetricsAsJSON()) {
      const { labelNames = [] } = registry.getSingleMetric(name) as unknown as { labelNames?: string[] }
      const labels = new Set(['role', ...labelNames])
      if (String(type) !== 'histogram') known.set(name, labels)
      else {
        for (const part of ['count', 'sum']) known.set(`${name}_${part}`, labels)
        known.set(`${name}_bucket`, new Set([...labels, 'le']))
      }
    }
  }
  return known
}

/** Labels that Prometheus adds to every series. */
const added = ['namespace', 'instance', 'pod', 'job']

/** Returns the metrics and labels in the expression that no process registers. */
function unknownIn(expression: string, known: Map<string, Set<string>>): string[] {
  const selectors = [...expression.matchAll(/([a-z0-9_]+)\{([^}]*)\}/g)]
  expect(selectors.length, expression).toBeGreaterThan(0)
  return selectors.flatMap(([, metric, matchers]) => {
    const labels = known.get(metric!)
    if (!labels) return [metric!]
    const named = [...matchers!.matchAll(/(\w+)(?:=|!)/g)].map(([, label]) => label!)
    return named.filter((label) => !added.includes(label) && !labels.has(label)).map((l) => `${metric}{${l}}`)
  })
}

test('a new worker exports its lost-command and orphan counters with the value 0', async () => {
  const text = await openMetrics('worker').registry.metrics()
  expect(text).toMatch(/^sandlot_exec_seconds_count\{role="worker",status="lost"\} 0$/m)
  expect(text).toMatch(/^sandlot_reconcile_actions_total\{action="end orphan",role="worker"\} 0$/m)
})

test('a new API process exports the failed-create counter with the value 0 for every server-side reason', async () => {
  const text = await openMetrics('api').registry.metrics()
  for (const reason of createFaults)
    expect(text).toContain(`sandlot_create_refusals_total{reason="${reason}",role="api"} 0`)
})

interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[]
}

test('every dashboard panel queries only metrics that the API or workers register', async () => {
  const known = await registered()
  const { panels }: Dashboard = JSON.parse(readFileSync(join(chart, 'dashboard.json'), 'utf8'))
  expect(panels.length).toBeGreaterThan(5)
  for (const { title, targets } of panels) {
    expect(targets.length, title).toBeGreaterThan(0)
    for (const { expr } of targets) expect(unknownIn(expr, known), title).toEqual([])
  }
})

describe.skipIf(!hasHelm)('the rendered alerts', () => {
  test('alerts and the recording rule query only metrics that the API or workers register', async () => {
    const known = await registered()
    expect(alertsOf()).toHaveLength(12)
    const rules = rulesOf().groups.flatMap(({ rules }) => rules)
    expect(rules).toHaveLength(13)
    for (const { alert, expr } of rules) expect(unknownIn(expr, known), alert).toEqual([])
  })

  test('the SandlotCreatesRefused alert matches exactly the failure reasons that clients do not cause', () => {
    const { expr } = alertsOf().find(({ alert }) => alert === 'SandlotCreatesRefused')!
    expect(expr).toContain(`reason=~"${createFaults.join('|')}"`)
  })

  test("the runbook's log command selects only the pods of the API and the workers", () => {
    const command = /logs -l '(\S+) in \((\w+),(\w+)\)' --prefix --tail=-1/.exec(
      readPage('docs/operations.md'),
    )
    const [, label, ...components] = command!
    const pods = render(['--values', join(chart, 'ci/quickstart-values.yaml')]).flatMap(
      ({ kind, metadata, spec }) => {
        const { template } = (spec ?? {}) as { template?: { metadata?: { labels?: Record<string, string> } } }
        return template
          ? [{ kind, name: metadata!.name, component: template.metadata?.labels?.[label!] }]
          : []
      },
    )
    const selected = pods.filter(({ component }) => components.includes(component ?? ''))
    expect(selected.map(({ name }) => name).sort()).toEqual(['sandlot-api', 'sandlot-worker'])
    expect(pods.filter(({ kind }) => kind === 'Deployment')).toHaveLength(2)
  })

  test('each alert has a runbook in docs/operations.md', () => {
    const headings = [...readPage('docs/operations.md').matchAll(/^### (Sandlot\w+)$/gm)].map(
      ([, name]) => name,
    )
    const rules = alertsOf()
    expect(headings).toEqual(rules.map(({ alert }) => alert))
    for (const { alert, annotations } of rules)
      expect(annotations.runbook_url).toBe(`${runbooks}#${alert.toLowerCase()}`)
  })

  test.skipIf(!promtool)('each alert fires only when its condition is met (needs promtool)', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandlot-alerts-'))
    const check = (change: (rules: string) => string) => {
      writeFileSync(join(folder, 'rules.yaml'), change(dumpYaml(rulesOf())))
      const args = ['test', 'rules', join(folder, 'alerts.yaml')]
      const { status, stdout, stderr } = spawnSync(promtool!, args, { encoding: 'utf8' })
      return { status, words: stdout + stderr }
    }
    try {
      copyFileSync(join(root, 'test/chart/alerts.yaml'), join(folder, 'alerts.yaml'))
      expect(check((rules) => rules)).toMatchObject({
        status: 0,
        words: expect.not.stringContaining('FAILED'),
      })
      const { status, words } = check((rules) => rules.replaceAll('max(', 'sum('))
      expect(status).not.toBe(0)
      expect(words).toContain('SandlotQueueGrows')
      const tested = readFileSync(join(folder, 'alerts.yaml'), 'utf8')
      for (const { alert } of alertsOf())
        expect(tested, alert).toContain(`alertname: ${alert}\n        exp_alerts:`)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
