/** The one store: a value and its listeners. It knows nothing of views. */
export interface Store<State> {
  get(): State
  /** Changes what is named. */
  set(change: Partial<State> | ((state: State) => Partial<State>)): void
  /** @returns what ends it */
  subscribe(listener: () => void): () => void
}

export function createStore<State extends object>(first: State): Store<State> {
  let state = first
  const listeners = new Set<() => void>()
  return {
    get: () => state,
    set(change) {
      state = { ...state, ...(typeof change === 'function' ? change(state) : change) }
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
