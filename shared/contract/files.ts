import * as z from 'zod'
import { EntityTags, OnlyNew } from './conditions.ts'
import { atMostBytes, ById, family, Switch, Time } from './endpoint.ts'
import { inside, insideErrors } from './exec.ts'
import { limits } from './limits.ts'
import { Content, Text } from './sandboxes.ts'

/** Bytes. Linux takes no longer paths. */
const longestPath = 4096
const Path = Text.min(1)
  .refine((path) => Buffer.byteLength(path) <= longestPath, `must have at most ${longestPath} bytes`)
  .meta({ description: 'Relative to /workspace, or absolute', ...atMostBytes(longestPath) })
/** JSON cannot carry a name that is not UTF-8. This goes in and out beside `path` then. */
const PathBase64 = z
  .base64()
  .refine((text) => {
    const bytes = Buffer.from(text, 'base64')
    return bytes.length > 0 && bytes.length <= longestPath && !bytes.includes(0)
  }, `must be 1 to ${longestPath} bytes, none of them NUL`)
  .meta({ description: 'In place of path, for one that is not UTF-8', ...atMostBytes(longestPath) })
const named = { path: Path.optional(), path_base64: PathBase64.optional() }
const oneName = (given: { path?: string | undefined; path_base64?: string | undefined }) =>
  (given.path === undefined) !== (given.path_base64 === undefined)
const whichName = { path: ['path'], message: 'or path_base64 is needed, and not both' }
const oneNameAtMost = (given: { path?: string | undefined; path_base64?: string | undefined }) =>
  given.path === undefined || given.path_base64 === undefined
const notBoth = { path: ['path'], message: 'and path_base64 do not go together' }
const located = { path: z.string(), path_base64: z.string().optional() }
const NamesBase64 = z.record(z.string(), z.string()).optional()
const Mode = z.string().regex(/^0?[0-7]{3}$/, 'must be three octal digits, such as 644')
const readErrors = [...insideErrors, 'file_not_found', 'is_directory', 'permission_denied'] as const
const writeErrors = [
  ...insideErrors,
  'file_exists',
  'is_directory',
  'permission_denied',
  'read_only',
  'no_space',
] as const
/** Some lines of a file, for a reader. */
const shown = {
  start_line: z.coerce.number().int().min(1).optional().meta({ description: 'The first line is 1' }),
  end_line: z.coerce.number().int().min(1).optional().meta({ description: 'Included' }),
}
const inOrder = ({
  start_line,
  end_line,
}: {
  start_line?: number | undefined
  end_line?: number | undefined
}) => end_line === undefined || end_line >= (start_line ?? 1)
const whichOrder = { path: ['end_line'], message: 'must not come before start_line' }
const Sha256 = z.string().regex(/^[0-9a-f]{64}$/)

export const FileView = z
  .object({
    ...located,
    size: z.int().meta({ description: 'Bytes of the whole file' }),
    content: z.string(),
    encoding: z
      .enum(['utf-8', 'base64'])
      .meta({ description: 'base64 when the content is not UTF-8, or holds a NUL' }),
    total_lines: z.int().nullable().meta({ description: 'null for a file that is not text' }),
    sha256: Sha256.meta({ description: 'Of the whole file' }),
    truncated: z.boolean(),
  })
  .meta({ id: 'FileView' })
export type FileView = z.infer<typeof FileView>

export const CreatedFile = z.object({ ...located, size: z.int(), sha256: Sha256 }).meta({ id: 'CreatedFile' })
export type CreatedFile = z.infer<typeof CreatedFile>

export const FileEntry = z
  .object({
    name: z.string().meta({ description: 'With \ufffd where a byte is not UTF-8' }),
    name_base64: z.string().optional().meta({ description: 'The name itself, when it is not UTF-8' }),
    type: z.enum(['file', 'directory', 'symlink', 'fifo', 'socket', 'block', 'character']),
    size: z.int(),
    mode: z.string().meta({ description: 'Octal, such as 644' }),
    modified_at: Time,
    target: z
      .string()
      .optional()
      .meta({ description: 'Of a symlink, with \ufffd where a byte is not UTF-8' }),
    target_base64: z.string().optional().meta({ description: 'The target itself, when it is not UTF-8' }),
  })
  .meta({ id: 'FileEntry' })

export type FileEntry = z.infer<typeof FileEntry>

/** Checked without a repeated group, which over megabytes would overflow the stack. */
const isBase64 = (text: string) =>
  text.length % 4 === 0 && !/[^A-Za-z0-9+/]/.test(text.replace(/={1,2}$/, ''))

export const files = family({
  viewFile: {
    summary: 'Read a file, or some lines of it',
    method: 'GET',
    path: '/v1/sandboxes/:id/files/view',
    example: {
      query: { path: 'app.log', start_line: '1', end_line: '20' },
      client: 'sandlot files view app.log --lines 1:20',
    },
    ...inside,
    params: ById,
    query: z
      .strictObject({
        ...named,
        ...shown,
        reveal: Switch.meta({ description: '`true` shows secrets as they are, not as `[secret NAME]`' }),
      })
      .refine(oneName, whichName)
      .refine(inOrder, whichOrder),
    reply: FileView,
    errors: readErrors,
  },
  createFile: {
    summary: 'Write a file whole, or not at all; folders on its way are made',
    method: 'POST',
    path: '/v1/sandboxes/:id/files/create',
    repeat: 'no',
    example: {
      body: { path: 'notes.txt', content: 'hello\n' },
      client: 'sandlot files create notes.txt --content hello',
    },
    ...inside,
    status: 201,
    params: ById,
    bodyBytes: limits.bodyBytes,
    body: z
      .strictObject({
        ...named,
        content: Content,
        encoding: z.enum(['utf-8', 'base64']).default('utf-8'),
        mode: Mode.optional(),
        overwrite: z.boolean().default(false),
      })
      .refine(oneName, whichName)
      .refine(({ content, encoding }) => encoding !== 'base64' || isBase64(content), {
        path: ['content'],
        message: 'is not base64',
      }),
    reply: CreatedFile,
    errors: writeErrors,
  },
  editFile: {
    summary: 'Replace exact text in a file, atomically; mode and line endings stay',
    method: 'POST',
    path: '/v1/sandboxes/:id/files/edit',
    repeat: 'no',
    example: {
      body: { path: 'app.conf', old: 'debug = false', new: 'debug = true' },
      client: "sandlot files edit app.conf --old 'debug = false' --new 'debug = true'",
    },
    ...inside,
    params: ById,
    bodyBytes: limits.bodyBytes,
    body: z
      .strictObject({
        ...named,
        old: Content.min(1).meta({
          description:
            'Must be in the file exactly once, unless replace_all. A newline stands for any line ending',
        }),
        new: Content,
        replace_all: z.boolean().default(false),
        if_match: Sha256.optional().meta({ description: 'sha256 of the file that is meant; another is 412' }),
      })
      .refine(oneName, whichName),
    reply: CreatedFile.extend({ replacements: z.int() }).meta({ id: 'EditedFile' }),
    errors: [...writeErrors, 'file_not_found', 'edit_no_match', 'edit_not_unique', 'file_changed'],
  },
  listFiles: {
    summary: 'The entries of a directory, sorted by name; the entry itself for anything else',
    method: 'GET',
    path: '/v1/sandboxes/:id/files/ls',
    example: { query: { path: 'src' }, client: 'sandlot files ls src' },
    ...inside,
    params: ById,
    query: z.strictObject(named).refine(oneNameAtMost, notBoth),
    reply: z.object({ ...located, entries: z.array(FileEntry), truncated: z.boolean() }),
    errors: readErrors,
  },
  globFiles: {
    summary:
      'Paths that match a pattern: *, ?, [a-z], {a,b}, and ** for any depth; sorted. A leading dot is matched by a dot alone',
    method: 'GET',
    path: '/v1/sandboxes/:id/files/glob',
    example: { query: { pattern: '**/*.py' }, client: "sandlot files glob '**/*.py'" },
    ...inside,
    params: ById,
    query: z.strictObject({ pattern: Text.min(1).max(4096), ...named }).refine(oneNameAtMost, notBoth),
    reply: z.object({
      paths: z.array(z.string()).meta({ description: 'Relative to path' }),
      paths_base64: NamesBase64.meta({ description: 'By index in paths: those that are not UTF-8' }),
      truncated: z.boolean(),
    }),
    errors: readErrors,
  },
  grepFiles: {
    summary: 'Lines that match, in the files below a path; sorted by path and line',
    method: 'GET',
    path: '/v1/sandboxes/:id/files/grep',
    example: { query: { pattern: 'TODO|FIXME', path: 'src' }, client: "sandlot files grep 'TODO|FIXME' src" },
    ...inside,
    params: ById,
    query: z
      .strictObject({
        pattern: Text.min(1).max(4096).meta({
          description: 'A POSIX extended regular expression',
        }),
        ...named,
        include: Text.min(1).max(4096).optional().meta({
          description: 'A glob that the file must match: its name, or with a / its path relative to path',
        }),
        ignore_case: Switch,
        fixed: Switch.meta({ description: 'The pattern is text, no expression' }),
      })
      .refine(oneNameAtMost, notBoth),
    reply: z.object({
      matches: z.array(
        z.object({
          path: z
            .string()
            .meta({ description: 'Begins with path as it was given, so that other calls take it' }),
          path_base64: z.string().optional(),
          line: z.int(),
          text: z.string().meta({ description: 'Cut after 2000 bytes' }),
          text_base64: z.string().optional().meta({ description: 'The same, when it is not UTF-8' }),
        }),
      ),
      skipped_binary: z.array(z.string()).meta({ description: 'Files that match and are no text' }),
      skipped_binary_base64: NamesBase64.meta({
        description: 'By index in skipped_binary: those that are not UTF-8',
      }),
      truncated: z.boolean(),
    }),
    errors: readErrors,
  },
  readRawFile: {
    summary: 'The bytes of a file, or a Range of them, or some of its lines, streamed',
    method: 'GET',
    path: '/v1/sandboxes/:id/files/raw',
    example: { query: { path: 'data.tar' }, client: 'sandlot files get data.tar' },
    ...inside,
    params: ById,
    query: z
      .strictObject({
        ...named,
        ...shown,
        reveal: Switch.meta({ description: 'Default true; `false` shows secrets as `[secret NAME]`' }),
      })
      .refine(oneName, whichName)
      .refine(inOrder, whichOrder),
    headers: z.object({
      range: z.string().optional(),
      'if-range': z.string().optional().meta({ description: 'An ETag: the Range counts only for this file' }),
      'if-match': EntityTags,
      'if-none-match': EntityTags.meta({ description: 'ETags; for one of these files the answer is 304' }),
    }),
    rawReply: 'application/octet-stream',
    errors: [...readErrors, 'range_not_satisfiable', 'file_changed'],
  },
  writeRawFile: {
    summary: 'Write the bytes of the body to a file, whole or not at all, streamed',
    method: 'PUT',
    path: '/v1/sandboxes/:id/files/raw',
    repeat: 'plain',
    example: { query: { path: 'data.tar' }, file: 'data.tar', client: 'sandlot files put data.tar data.tar' },
    ...inside,
    status: 201,
    params: ById,
    query: z
      .strictObject({
        ...named,
        mode: Mode.optional(),
        overwrite: Switch.meta({ description: 'Default true' }),
      })
      .refine(oneName, whichName),
    headers: z.object({
      'if-match': EntityTags.meta({ description: 'sha256 of the file that is meant, in quotes' }),
      'if-none-match': OnlyNew.meta({ description: '`*`: only a new file is written' }),
    }),
    rawBody: true,
    reply: CreatedFile,
    errors: [...writeErrors, 'file_changed'],
  },
})
