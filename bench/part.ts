/** The interface of the parts of the benchmark. Each compares one operation with its alternative. */

export interface Row {
  what: string
  /** True for Sandlot, false for the alternative. */
  ours: boolean
  /** Such as `ms`, `per second`, `MiB`. */
  unit: string
  /** All measured values, in any order. */
  values: number[]
}

export interface Findings {
  rows: Row[]
  /** Limits of the figures. */
  verdicts?: { what: string; met: boolean }[]
  /** The method of the measurement and its limits: Markdown, a sentence each. */
  notes: string[]
  /** More detailed figures than the rows: Markdown. */
  details?: string
}

export interface Part {
  title: string
  /** Whether it needs a cluster, with the KUBECONFIG of an administrator. */
  needsCluster: boolean
  /** Environment variables that it also needs, described in its file. */
  needs?: string[]
  measure(): Promise<Findings>
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}

/** @throws without a cluster */
export function kubeconfig(): string {
  const { KUBECONFIG } = process.env
  if (!KUBECONFIG) throw new Error('KUBECONFIG names no cluster')
  return KUBECONFIG
}
