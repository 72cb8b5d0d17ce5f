const unitFactors: Record<string, number> = {
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
}

/**
 * Parses a Kubernetes quantity. For example, `500m` is 0.5 and `512Mi` is 536,870,912.
 * @throws {Error} if the text is not a quantity
 */
export function readQuantity(text: string): number {
  const [, digits, unit] = /^([\d.]+)([A-Za-z]*)$/.exec(text) ?? []
  const factor = unitFactors[unit ?? '']
  if (digits === undefined || factor === undefined) throw new Error(`not a quantity: ${text}`)
  return Number(digits) * factor
}
