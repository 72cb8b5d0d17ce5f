/**
 * Sums a metric over several processes, separately for each value of a label.
 * @param urls of internal servers
 * @param having text that a sample's line must contain
 */
export async function sumUp(
  urls: readonly string[],
  metric: string,
  label: string,
  having = '',
): Promise<Record<string, number>> {
  const sums: Record<string, number> = {}
  for (const url of urls) {
    const text = await (await fetch(`${url}/metrics`)).text()
    for (const [line, value, count] of text.matchAll(
      new RegExp(`^${metric}\\{.*${label}="([^"]*)".*\\} (\\d+)$`, 'gm'),
    )) {
      if (line.includes(having)) sums[value!] = (sums[value!] ?? 0) + Number(count)
    }
  }
  return sums
}
