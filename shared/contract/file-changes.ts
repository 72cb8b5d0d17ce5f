import * as z from 'zod'
import { ById, family } from './endpoint.ts'
import { inside } from './exec.ts'
import { Mode, writeErrors } from './files.ts'
import { aboutFile, hasName, isNamed, located, Path, PathBase64 } from './paths.ts'

const isTargetNamed = { oneOf: [{ required: ['to'] }, { required: ['to_base64'] }] }
const changeErrors = [...writeErrors, 'file_not_found'] as const

export const fileChanges = family({
  makeDirectory: {
    summary: 'Create a directory and its missing parent directories',
    method: 'POST',
    path: '/v1/sandboxes/:id/files/mkdir',
    repeat: 'no',
    example: {
      body: { path: 'build/logs', exist_ok: true },
      client: 'sandlot files mkdir build/logs --exist-ok',
    },
    ...inside,
    status: 201,
    params: ById,
    body: aboutFile({
      exist_ok: z.boolean().default(false).describe('Succeed if the directory exists. It keeps its mode'),
      mode: Mode.optional().describe('Mode of the new directory. The default is 755'),
    }).meta(hasName),
    reply: z.object({
      ...located,
      created: z.boolean().describe('Whether this request created the directory'),
    }),
    errors: writeErrors,
  },
  moveFile: {
    summary: 'Move or rename a file or directory, creating missing parent directories',
    method: 'POST',
    path: '/v1/sandboxes/:id/files/move',
    repeat: 'no',
    example: {
      body: { path: 'draft.txt', to: 'docs/final.txt' },
      client: 'sandlot files mv draft.txt docs/final.txt',
    },
    ...inside,
    params: ById,
    body: aboutFile({
      to: Path.optional().describe('The new path, absolute or relative to /workspace'),
      to_base64: PathBase64.optional(),
      overwrite: z
        .boolean()
        .default(false)
        .describe('Replace an existing file at the new path. A directory is never replaced'),
    })
      .refine(({ to, to_base64 }) => (to === undefined) !== (to_base64 === undefined), {
        path: ['to'],
        message: 'or to_base64 is required, but not both',
      })
      .meta({ allOf: [isNamed, isTargetNamed] }),
    reply: z.object(located).describe('The new path'),
    errors: changeErrors,
  },
  removeFile: {
    summary: 'Remove a file, or a directory and everything in it. Symlinks are not followed',
    method: 'POST',
    path: '/v1/sandboxes/:id/files/remove',
    repeat: 'no',
    example: { body: { path: 'build', recursive: true }, client: 'sandlot files rm build --recursive' },
    ...inside,
    params: ById,
    body: aboutFile({
      recursive: z.boolean().default(false).describe('Also remove a directory and everything in it'),
      missing_ok: z.boolean().default(false).describe('Succeed if the path does not exist'),
    }).meta(hasName),
    reply: z.object({
      ...located,
      removed: z.boolean().describe('false if the path did not exist'),
    }),
    errors: changeErrors,
  },
  changeFileMode: {
    summary: 'Set the permission bits of a file or directory. Symlinks are followed',
    method: 'POST',
    path: '/v1/sandboxes/:id/files/chmod',
    repeat: 'yes',
    example: { body: { path: 'run.sh', mode: '755' }, client: 'sandlot files chmod 755 run.sh' },
    ...inside,
    params: ById,
    body: aboutFile({
      mode: z.string().regex(/^[0-7]{3,4}$/, 'must be three or four octal digits, such as 644'),
    }).meta(hasName),
    reply: z.object({ ...located, mode: z.string() }),
    errors: changeErrors,
  },
})
