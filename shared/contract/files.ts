import * as z from 'zod'
import { endpoint, Id } from './endpoint.ts'
import { insideErrors } from './exec.ts'
import { Text } from './sandboxes.ts'

const ById = z.object({ id: Id })

const Path = Text.min(1).max(4096).meta({
  description: 'Relative to /workspace, or absolute',
})
const Sha256 = z.string().regex(/^[0-9a-f]{64}$/)

export const FileView = z
  .object({
    path: z.string(),
    size: z.int().meta({ description: 'Bytes of the whole file' }),
    content: z.string(),
    encoding: z.enum(['utf-8', 'base64']).meta({ description: 'base64 when the content is not UTF-8' }),
    total_lines: z.int().nullable().meta({ description: 'null for a file that is not text' }),
    sha256: Sha256.meta({ description: 'Of the whole file' }),
    truncated: z.boolean(),
  })
  .meta({ id: 'FileView' })
export type FileView = z.infer<typeof FileView>

export const viewFile = endpoint('viewFile', {
  summary: 'Read a file, or some lines of it',
  params: ById,
  query: z
    .strictObject({
      path: Path,
      start_line: z.coerce.number().int().min(1).optional().meta({ description: 'The first line is 1' }),
      end_line: z.coerce.number().int().min(1).optional().meta({ description: 'Included' }),
    })
    .refine(({ start_line, end_line }) => end_line === undefined || end_line >= (start_line ?? 1), {
      path: ['end_line'],
      message: 'must not come before start_line',
    }),
  reply: FileView,
  errors: [...insideErrors, 'file_not_found', 'is_directory', 'permission_denied'],
})

export const CreatedFile = z
  .object({ path: z.string(), size: z.int(), sha256: Sha256 })
  .meta({ id: 'CreatedFile' })
export type CreatedFile = z.infer<typeof CreatedFile>

export const createFile = endpoint('createFile', {
  summary: 'Write a file whole, or not at all; folders on its way are made',
  params: ById,
  body: z
    .strictObject({
      path: Path,
      content: z.string(),
      encoding: z.enum(['utf-8', 'base64']).default('utf-8'),
      mode: z
        .string()
        .regex(/^0?[0-7]{3}$/, 'must be three octal digits, such as 644')
        .optional(),
      overwrite: z.boolean().default(false),
    })
    .refine(({ content, encoding }) => encoding !== 'base64' || isBase64(content), {
      path: ['content'],
      message: 'is not base64',
    }),
  reply: CreatedFile,
  errors: [...insideErrors, 'file_exists', 'is_directory', 'permission_denied', 'read_only', 'no_space'],
})

const isBase64 = (text: string) =>
  /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)
