/** What the parts of the benchmark have in common: each measures one thing beside its alternative. */

export interface Row {
  what: string
  /** Whether it is Sandlot, or what a user would do instead. */
  ours: boolean
  /** What is counted, such as `ms`, `a second`, `MiB`. */
  unit: string
  /** As many as were measured, in no order. */
  values: number[]
}

export interface Findings {
  rows: Row[]
  /** What the figures are held to. */
  verdicts?: { what: string; met: boolean }[]
  /** How it was measured, and what that leaves out: Markdown, a sentence each. */
  notes: string[]
  /** What the rows sum up: Markdown. */
  details?: string
}

export interface Part {
  title: string
  /** Whether there must be a cluster: KUBECONFIG of an administrator. */
  needsCluster: boolean
  /** Variables of the environment that it also needs: its file says what they are. */
  needs?: string[]
  measure(): Promise<Findings>
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}

/** @throws when there is no cluster to measure on */
export function kubeconfig(): string {
  const { KUBECONFIG } = process.env
  if (!KUBECONFIG) throw new Error('KUBECONFIG names no cluster')
  return KUBECONFIG
}
