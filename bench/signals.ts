/** Removes resources outside this machine even if the benchmark is interrupted. */

const undos = new Set<() => Promise<unknown>>()

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await Promise.allSettled([...undos].map((undo) => undo()))
    process.exit(130)
  })
}

/** Runs `undo` on SIGINT or SIGTERM, unless the returned function has run it before. */
export function undoneAnyway(undo: () => Promise<unknown>): () => Promise<void> {
  undos.add(undo)
  return async () => {
    undos.delete(undo)
    await undo()
  }
}
