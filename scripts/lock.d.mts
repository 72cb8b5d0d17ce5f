/** Takes the lock, or tells the pid of the living process that has it. */
export function takeLock(
  path: string,
  pid?: number,
): { release: () => void; holder?: undefined } | { holder: number; release?: undefined }

/** The pid of the living process that holds the lock, if any. */
export function lockHolder(path: string): number | undefined
