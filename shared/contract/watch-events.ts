import type { FileStat } from './files.ts'

/** The path begins with the requested path, so other routes accept it. */
type Path = Pick<FileStat, 'path' | 'path_base64'>

export type WatchEvent = { id: string } & (
  | { event: 'start'; data: Path & { entries: number } }
  | { event: 'created' | 'changed'; data: FileStat }
  | { event: 'removed'; data: Path }
  /** The code and the detail of an error. After `unavailable`, the path can be watched again. */
  | { event: 'end'; data: { code: string; detail: string } }
)

/** The data of the final event if the path can be watched again. */
export const watchInterrupted = {
  code: 'unavailable',
  detail: 'The watch was interrupted. Watch the path again, and list it to find the changes that you missed.',
}
