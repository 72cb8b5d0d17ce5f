/** Interface of a part of the benchmark, which compares one operation of Sandlot to a baseline. */

export interface Row {
  what: string
  /** Whether the row describes Sandlot. False for the baseline. */
  ours: boolean
  /** Unit of the values, such as `ms`, `per second` or `MiB`. */
  unit: string
  /** All measured values, in any order. */
  values: number[]
}

export interface Findings {
  rows: Row[]
  /** Limits that the results must meet, and whether they did. */
  verdicts?: { what: string; met: boolean }[]
  /** Sentences in Markdown about the method and its limitations. */
  notes: string[]
  /** Additional figures in Markdown. */
  details?: string
}

export interface Part {
  title: string
  /** Whether the part needs a cluster, with an administrator's KUBECONFIG. */
  needsCluster: boolean
  /** Other required environment variables, which the part's file describes. */
  needs?: string[]
  measure(): Promise<Findings>
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}

/** @throws if KUBECONFIG is not set */
export function kubeconfig(): string {
  const { KUBECONFIG } = process.env
  if (!KUBECONFIG) throw new Error('KUBECONFIG names no cluster')
  return KUBECONFIG
}
