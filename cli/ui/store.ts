export interface Store<State> {
  get(): State
  set(change: Partial<State> | ((state: State) => Partial<State>)): void
  /** Returns a function that unregisters the listener. */
  subscribe(listener: () => void): () => void
}

/** @param settle corrects each new state before listeners are notified */
export function createStore<State extends object>(
  first: State,
  settle: (state: State, before: State) => State = (state) => state,
): Store<State> {
  let state = first
  const listeners = new Set<() => void>()
  return {
    get: () => state,
    set(change) {
      state = settle({ ...state, ...(typeof change === 'function' ? change(state) : change) }, state)
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
