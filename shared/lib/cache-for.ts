/** Caches a result for `ms` milliseconds. Concurrent callers share one call, and errors are not cached. */
export function cacheFor<T>(ms: number, load: () => Promise<T>): () => Promise<T> {
  let last: { result: Promise<T>; at: number } | undefined
  return () => {
    const now = performance.now()
    if (last && now - last.at < ms) return last.result
    const loading = { result: load(), at: now }
    last = loading
    loading.result.catch(() => {
      if (last === loading) last = undefined
    })
    return loading.result
  }
}
