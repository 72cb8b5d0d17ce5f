import { Problem } from '../../shared/platform/problem.ts'

const shown = { errors: 100, characters: 200 }

export interface FieldError {
  path: string
  message: string
}

export function invalid(...errors: FieldError[]): Problem {
  const named = errors.slice(0, shown.errors).map(({ path, message }) => ({ path: cut(path), message }))
  const [first] = named
  const more = errors.length > 1 ? ` The request has ${errors.length} errors in total.` : ''
  return new Problem('invalid_request', `${first?.path || 'The body'}: ${first?.message}.${more}`, {
    members: { errors: named },
  })
}

const cut = (path: string) =>
  path.length <= shown.characters ? path : `${path.slice(0, shown.characters)}…`.toWellFormed()
