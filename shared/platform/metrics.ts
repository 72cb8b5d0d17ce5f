import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { type MemoryBudget, memoryKinds } from './memory-budget.ts'

export type Metrics = ReturnType<typeof openMetrics>

const fast = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const slow = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]

/**
 * Reasons for failed creates that are not the client's fault. The SandlotCreatesRefused alert matches the
 * same list.
 */
export const createFaults = [
  'cluster_misconfigured',
  'cluster_unreachable',
  'internal_error',
  'no_worker',
  'unavailable',
] as const

export function openMetrics(role: string, held?: Pick<MemoryBudget, 'sums'>) {
  const registry = new Registry()
  registry.setDefaultLabels({ role })
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  const counter = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Counter({ name, help, labelNames, registers })
  const gauge = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Gauge({ name, help, labelNames, registers })
  const histogram = <L extends string>(name: string, help: string, labelNames: L[], buckets: number[]) =>
    new Histogram({ name, help, labelNames, buckets, registers })
  const execs = histogram('sandlot_exec_seconds', 'Duration of commands, by final status', ['status'], fast)
  const reconcileActions = counter(
    'sandlot_reconcile_actions_total',
    'Repairs by the reconciler, by action',
    ['action'],
  )
  // Alerts on increase() detect the first event only if the time series starts at 0.
  if (role === 'worker') {
    execs.zero({ status: 'lost' })
    reconcileActions.inc({ action: 'end orphan' }, 0)
  }
  const createRefusals = counter(
    'sandlot_create_refusals_total',
    'Failed requests to create a sandbox, by reason',
    ['reason'],
  )
  if (role === 'api') for (const reason of createFaults) createRefusals.inc({ reason }, 0)
  return {
    registry,
    requests: histogram(
      'sandlot_http_request_seconds',
      'Duration of requests, by route, method and status',
      ['route', 'method', 'status'],
      fast,
    ),
    refusals: counter('sandlot_refusals_total', 'Refused requests, by error code', ['code']),
    createRefusals,
    componentReady: gauge(
      'sandlot_component_ready',
      'Whether /readyz reports a component as ready (1) or not (0)',
      ['component'],
    ),
    servedExecs: gauge(
      'sandlot_execs',
      'Commands of this worker that are running, or whose exit status has not been delivered',
      [],
    ),
    creates: histogram(
      'sandlot_create_seconds',
      'Time from admission until commands can run, by outcome',
      ['outcome'],
      slow,
    ),
    execs,
    slots: counter(
      'sandlot_slots_total',
      'Commands that used an open slot (warm) or had to open one (cold)',
      ['outcome'],
    ),
    slotsWaiting: gauge('sandlot_slots_waiting', 'Open slots without a command', []),
    poolClaims: counter(
      'sandlot_pool_claims_total',
      'Sandboxes created from an image with a warm pool, by outcome: claimed a pod, or missed because none was ready',
      ['image', 'outcome'],
    ),
    poolPods: gauge('sandlot_pool_pods', 'Warm pods, by state; wanted is the target size', [
      'image',
      'state',
    ]),
    poolRefill: histogram(
      'sandlot_pool_refill_seconds',
      'Time from the decision to start a warm pod until it can be claimed',
      ['image'],
      slow,
    ),
    jobs: histogram('sandlot_job_seconds', 'Duration of jobs, by name and outcome', ['job', 'outcome'], slow),
    held: new Gauge({
      name: 'sandlot_held_bytes',
      help: 'Memory reserved for client data, by kind',
      labelNames: ['kind'],
      registers,
      collect() {
        for (const kind of memoryKinds) this.set({ kind }, held?.sums[kind] ?? 0)
      },
    }),
    reconcileActions,
    reconcileIntervalSeconds: histogram(
      'sandlot_reconcile_seconds',
      'Duration of reconciler passes, in the worker that ran them',
      [],
      slow,
    ),
    queueDepth: gauge('sandlot_queue_jobs', 'Jobs in the queue, by state', ['state']),
    sandboxes: gauge('sandlot_sandboxes', 'Sandboxes that are active or not yet cleaned up, by state', [
      'state',
    ]),
  }
}
