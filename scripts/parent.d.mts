/** Calls back once when the process that started this one, or the one that SANDLOT_WATCH_PARENT names, is gone. */
export function watchParent(gone: () => void): void
