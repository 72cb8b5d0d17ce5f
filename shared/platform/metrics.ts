/** The metrics for Prometheus: names and buckets once, for the API and the workers. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export type Metrics = ReturnType<typeof openMetrics>

/** Seconds. */
const fast = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const slow = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]

export function openMetrics(role: string) {
  const registry = new Registry()
  registry.setDefaultLabels({ role })
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  return {
    registry,
    requests: new Histogram({
      name: 'sandlot_http_request_seconds',
      help: 'Requests by route, method and status',
      labelNames: ['route', 'method', 'status'],
      buckets: fast,
      registers,
    }),
    refusals: new Counter({
      name: 'sandlot_refusals_total',
      help: 'Requests refused, by error code',
      labelNames: ['code'],
      registers,
    }),
    creates: new Histogram({
      name: 'sandlot_create_seconds',
      help: 'From admission to the first command that could run, by outcome',
      labelNames: ['outcome'],
      buckets: slow,
      registers,
    }),
    execs: new Histogram({
      name: 'sandlot_exec_seconds',
      help: 'Commands by how they ended',
      labelNames: ['status'],
      buckets: fast,
      registers,
    }),
    slots: new Counter({
      name: 'sandlot_slots_total',
      help: 'Commands by whether an open slot waited for them (warm) or not (cold); only where starting is slow',
      labelNames: ['outcome'],
      registers,
    }),
    poolClaims: new Counter({
      name: 'sandlot_pool_claims_total',
      help: 'Creates of images that have a pool: claimed a warm pod, or missed because none was ready',
      labelNames: ['image', 'outcome'],
      registers,
    }),
    poolPods: new Gauge({
      name: 'sandlot_pool_pods',
      help: 'Warm pods by state; wanted is what the pool is to have',
      labelNames: ['image', 'state'],
      registers,
    }),
    poolRefill: new Histogram({
      name: 'sandlot_pool_refill_seconds',
      help: 'From the decision to start a warm pod until it can be claimed',
      labelNames: ['image'],
      buckets: slow,
      registers,
    }),
    jobs: new Histogram({
      name: 'sandlot_job_seconds',
      help: 'Jobs by name and outcome',
      labelNames: ['job', 'outcome'],
      buckets: slow,
      registers,
    }),
    sweeps: new Counter({
      name: 'sandlot_sweep_actions_total',
      help: 'What the sweep had to mend, by action',
      labelNames: ['action'],
      registers,
    }),
    queueDepth: new Gauge({
      name: 'sandlot_queue_jobs',
      help: 'Jobs in the queue by state, as of the last scrape',
      labelNames: ['state'],
      registers,
    }),
    sandboxes: new Gauge({
      name: 'sandlot_sandboxes',
      help: 'Sandboxes that are active or not yet cleaned up, as of the last scrape',
      labelNames: ['state'],
      registers,
    }),
  }
}
