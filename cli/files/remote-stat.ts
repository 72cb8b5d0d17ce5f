import { CliError } from '../core/errors.ts'
import type { RemotePath } from './download.ts'

type Kind = 'file' | 'folder' | 'missing'

/** Requests the first byte of a path to determine whether it is a file, a folder or missing. */
export async function kindOf({ api, id, path }: RemotePath): Promise<Kind> {
  try {
    const headers = { range: 'bytes=0-0' }
    const { response } = await api.open('readRawFile', { params: { id }, query: { path }, headers })
    response.destroy()
    return 'file'
  } catch (error) {
    if (error instanceof CliError && Object.hasOwn(kinds, error.code)) return kinds[error.code]!
    throw error
  }
}

const kinds: Record<string, Kind> = {
  is_directory: 'folder',
  file_not_found: 'missing',
  // An empty file has no first byte.
  range_not_satisfiable: 'file',
  // A pipe, device or socket. The write will report an invalid path.
  invalid_request: 'file',
}
