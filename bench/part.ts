/** A benchmark that compares an operation of Sandlot to a baseline. */

export interface Row {
  what: string
  ours: boolean
  /** For example `ms`, `per second` or `MiB`. */
  unit: string
  values: number[]
}

export interface Findings {
  rows: Row[]
  verdicts?: { what: string; met: boolean }[]
  /** Method and limitations, in Markdown. */
  notes: string[]
  /** Additional figures in Markdown. */
  details?: string
}

export interface Part {
  title: string
  needsCluster: boolean
  needs?: string[]
  measure(): Promise<Findings>
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}

export function kubeconfig(): string {
  const { KUBECONFIG } = process.env
  if (!KUBECONFIG) throw new Error('KUBECONFIG names no cluster')
  return KUBECONFIG
}
