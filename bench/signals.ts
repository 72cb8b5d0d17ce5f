/** Removes the resources that a benchmark created outside this machine, also when it is interrupted. */

const undos = new Set<() => Promise<unknown>>()

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await Promise.allSettled([...undos].map((undo) => undo()))
    process.exit(130)
  })
}

/** @returns the same, to be called in time: it is done once */
export function undoneAnyway(undo: () => Promise<unknown>): () => Promise<void> {
  undos.add(undo)
  return async () => {
    undos.delete(undo)
    await undo()
  }
}
