import * as z from 'zod'
import { EntityTags, OnlyNew, Range } from './conditions.ts'
import { ById, family, Switch, Time } from './endpoint.ts'
import { inside, insideErrors } from './exec.ts'
import { grepSyntax } from './grep-pattern.ts'
import { limits } from './limits.ts'
import { aboutFile, hasName, isNamed, isNamedOnce, located, named, notBoth, oneNameAtMost } from './paths.ts'
import { base64Pattern, Content, characters, isBase64, Text, whole } from './texts.ts'

const NamesBase64 = z.record(z.string(), z.string()).optional()
/** A glob pattern. The worker repeats these checks for each alternative after it expands braces. */
const Glob = characters(Text, 0, limits.globCharacters)
  .regex(/^(?!\/)/, 'must be relative to `path`')
  .regex(/^(?!([\s\S]*\/)?\.\.(\/|$))/, 'must not contain `..`; set `path` to the directory to search')
  .regex(/(^|\/)(?!\.?(\/|$))/, 'must name a file or directory')
  .meta({ minLength: 1 })
export const Mode = z.string().regex(/^0?[0-7]{3}$/, 'must be three octal digits, such as 644')
const readErrors = [...insideErrors, 'file_not_found', 'is_directory', 'permission_denied'] as const
export const writeErrors = [
  ...insideErrors,
  'file_exists',
  'is_directory',
  'permission_denied',
  'read_only',
  'disk_full',
] as const
const shown = {
  start_line: whole(1).optional().describe('First line to return, starting at 1'),
  end_line: whole(1).optional().describe('Last line to return. A number below start_line selects no lines'),
}
const Sha256 = z.string().regex(/^[0-9a-f]{64}$/)

export const FileView = z
  .object({
    ...located,
    size: z.int().describe('Size of the complete file, in bytes'),
    content: z.string(),
    encoding: z
      .enum(['utf-8', 'base64'])
      .describe('base64 if the content is not UTF-8 or contains a NUL; otherwise utf-8'),
    total_lines: z.int().nullable().describe('Number of lines in the file; null if the file is not text'),
    sha256: Sha256.describe('SHA-256 hash of the complete file'),
    truncated: z.boolean(),
  })
  .meta({ id: 'FileView' })
export type FileView = z.infer<typeof FileView>

export const CreatedFile = z.object({ ...located, size: z.int(), sha256: Sha256 }).meta({ id: 'CreatedFile' })
export type CreatedFile = z.infer<typeof CreatedFile>

export const FileEntry = z
  .object({
    name: z.string().describe('The name. Bytes that are not UTF-8 are replaced with \ufffd'),
    name_base64: z.string().optional().describe('The exact name in base64, if it is not UTF-8'),
    type: z.enum(['file', 'directory', 'symlink', 'fifo', 'socket', 'block', 'character']),
    size: z.int(),
    mode: z.string().describe('The permission bits in octal, such as 644'),
    uid: z.int().describe('Id of the owner'),
    gid: z.int().describe('Id of the group'),
    owner: z.string().nullable().describe('Name of the owner; null if the id has no name'),
    group: z.string().nullable().describe('Name of the group; null if the id has no name'),
    modified_at: Time,
    target: z
      .string()
      .optional()
      .describe('The target of a symlink. Bytes that are not UTF-8 are replaced with \ufffd'),
    target_base64: z.string().optional().describe('The exact target in base64, if it is not UTF-8'),
  })
  .meta({ id: 'FileEntry' })
export type FileEntry = z.infer<typeof FileEntry>

export const FileStat = FileEntry.extend(located).meta({ id: 'FileStat' })
export type FileStat = z.infer<typeof FileStat>

const ListedEntry = FileEntry.extend({
  path: z
    .string()
    .optional()
    .describe(
      'Path of the entry if `depth` exceeds 1. It begins with the requested path, so other routes accept it',
    ),
  path_base64: z.string().optional(),
}).meta({ id: 'ListedEntry' })
export type ListedEntry = z.infer<typeof ListedEntry>

/** JSON Schema rule: if `encoding` is `base64`, `content` must be base64. */
const contentInBase64 = {
  if: { properties: { encoding: { const: 'base64' } }, required: ['encoding'] },
  // biome-ignore lint/suspicious/noThenProperty: JSON Schema's word
  then: { properties: { content: { pattern: base64Pattern } } },
}

const listed = (description: string) =>
  z
    .strictObject({
      ...named,
      depth: whole(1, limits.listed.depth).optional().describe(description),
    })
    .refine(oneNameAtMost, notBoth)
    .meta(isNamedOnce)

export const files = family({
  viewFile: {
    summary: 'Read a file or a range of lines',
    method: 'GET',
    path: '/v1/sandboxes/:id/files/view',
    example: {
      query: { path: 'app.log', start_line: '1', end_line: '20' },
      client: 'sandlot files view app.log --lines 1:20',
    },
    ...inside,
    params: ById,
    query: aboutFile({
      ...shown,
      reveal: Switch.describe('`true` returns the values of secrets instead of `[secret NAME]`'),
    }).meta(isNamed),
    reply: FileView,
    errors: readErrors,
  },
  createFile: {
    summary: 'Write a file atomically, creating missing parent directories',
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
    forLargerBody: 'Write a larger file with PUT files/raw.',
    body: aboutFile({
      content: Content,
      encoding: z.enum(['utf-8', 'base64']).default('utf-8'),
      mode: Mode.optional(),
      overwrite: z.boolean().default(false),
    })
      .refine(({ content, encoding }) => encoding !== 'base64' || isBase64(content), {
        path: ['content'],
        message: 'is not base64',
      })
      .meta({ ...hasName, ...contentInBase64 }),
    reply: CreatedFile,
    errors: writeErrors,
  },
  editFile: {
    summary: 'Replace exact text in a file atomically. The mode and line endings of the file are preserved',
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
    forLargerBody: 'To replace longer text, read the file with GET files/raw and write it with PUT.',
    body: aboutFile({
      old: Content.min(1).describe(
        'The text to replace. It must occur exactly once in the file, unless replace_all is true. A newline matches any line ending',
      ),
      new: Content,
      replace_all: z.boolean().default(false),
      if_match: Sha256.optional().describe(
        'Expected SHA-256 hash of the file. If it differs, the response is 412',
      ),
    }).meta(hasName),
    reply: CreatedFile.extend({ replacements: z.int() }).meta({ id: 'EditedFile' }),
    errors: [...writeErrors, 'file_not_found', 'edit_no_match', 'edit_not_unique', 'precondition_failed'],
  },
  listFiles: {
    summary: 'List the entries of a directory, sorted. For any other path, return the entry of that path',
    method: 'GET',
    path: '/v1/sandboxes/:id/files/ls',
    example: { query: { path: 'src' }, client: 'sandlot files ls src' },
    ...inside,
    params: ById,
    query: listed('Levels of directories to list. The default is 1'),
    reply: z.object({ ...located, entries: z.array(ListedEntry), truncated: z.boolean() }),
    errors: readErrors,
  },
  watchFiles: {
    summary: 'Stream the changes under a path as events: start, created, changed, removed and end',
    method: 'GET',
    path: '/v1/sandboxes/:id/files/watch',
    example: { query: { path: 'src', depth: '32' }, client: 'sandlot files watch src --depth 32' },
    ...inside,
    params: ById,
    query: listed('Levels of directories to watch. The default is 1'),
    rawReply: 'text/event-stream',
    errors: readErrors,
  },
  statFile: {
    summary: 'Get the type, size, mode, owner and modification time of a path. Symlinks are not followed',
    method: 'GET',
    path: '/v1/sandboxes/:id/files/stat',
    example: { query: { path: 'src/app.py' }, client: 'sandlot files stat src/app.py' },
    ...inside,
    params: ById,
    query: aboutFile({}).meta(isNamed),
    reply: FileStat,
    errors: readErrors,
  },
  globFiles: {
    summary:
      'List the paths that match a glob pattern, sorted. The pattern supports *, ?, [a-z], {a,b}, and ** for any depth. Only a dot matches a leading dot',
    method: 'GET',
    path: '/v1/sandboxes/:id/files/glob',
    example: { query: { pattern: '**/*.py' }, client: "sandlot files glob '**/*.py'" },
    ...inside,
    params: ById,
    query: z
      .strictObject({ pattern: Glob, ...named })
      .refine(oneNameAtMost, notBoth)
      .meta(isNamedOnce),
    reply: z.object({
      paths: z.array(z.string()).describe('The matching paths, relative to `path`'),
      paths_base64: NamesBase64.describe(
        'Exact paths in base64, for paths that are not UTF-8. Keys are indexes in `paths`',
      ),
      truncated: z.boolean(),
    }),
    errors: readErrors,
  },
  grepFiles: {
    summary: 'Find matching lines in the files under a path, sorted by path and line number',
    method: 'GET',
    path: '/v1/sandboxes/:id/files/grep',
    example: { query: { pattern: 'TODO|FIXME', path: 'src' }, client: "sandlot files grep 'TODO|FIXME' src" },
    ...inside,
    params: ById,
    query: z
      .strictObject({
        pattern: characters(Text, 1, 4096).describe(`If fixed is true, plain text. Otherwise ${grepSyntax}`),
        ...named,
        include: Glob.optional().describe(
          'A glob that file names must match. A glob that contains a / must match the file path relative to `path`',
        ),
        ignore_case: Switch,
        fixed: Switch.describe('Treat the pattern as plain text'),
      })
      .refine(oneNameAtMost, notBoth)
      .meta(isNamedOnce),
    reply: z.object({
      matches: z.array(
        z.object({
          path: z
            .string()
            .describe('Path of the file. It begins with the requested path, so other routes accept it'),
          path_base64: z.string().optional(),
          line: z.int(),
          text: z.string().describe('The line, truncated to 2000 bytes'),
          text_base64: z.string().optional().describe('The exact line in base64, if it is not UTF-8'),
        }),
      ),
      skipped_binary: z.array(z.string()).describe('Paths of matching files that are not text'),
      skipped_binary_base64: NamesBase64.describe(
        'Exact paths in base64, for paths that are not UTF-8. Keys are indexes in `skipped_binary`',
      ),
      truncated: z.boolean(),
    }),
    errors: readErrors,
  },
  readRawFile: {
    summary: 'Download a file as bytes: the complete file, a byte range, or a range of lines',
    method: 'GET',
    path: '/v1/sandboxes/:id/files/raw',
    example: { query: { path: 'data.tar' }, client: 'sandlot files get data.tar' },
    ...inside,
    params: ById,
    query: aboutFile({
      ...shown,
      reveal: Switch.describe(
        '`false` replaces the values of secrets with `[secret NAME]`. The default is `true`',
      ),
    }).meta(isNamed),
    headers: z.object({
      range: Range,
      'if-range': z
        .string()
        .optional()
        .describe('An ETag. The Range applies only if the file still has this ETag'),
      'if-match': EntityTags,
      'if-none-match': EntityTags.describe(
        'A list of ETags. If the file has one of these ETags, the response is 304',
      ),
    }),
    rawReply: 'application/octet-stream',
    errors: [...readErrors, 'range_not_satisfiable', 'precondition_failed'],
  },
  writeRawFile: {
    summary: 'Upload the request body to a file atomically',
    method: 'PUT',
    path: '/v1/sandboxes/:id/files/raw',
    repeat: 'plain',
    example: { query: { path: 'data.tar' }, file: 'data.tar', client: 'sandlot files put data.tar data.tar' },
    ...inside,
    status: 201,
    params: ById,
    query: aboutFile({
      mode: Mode.optional(),
      overwrite: Switch.describe('`false` fails if the file exists. The default is `true`'),
    }).meta(isNamed),
    headers: z.object({
      'if-match': EntityTags.describe('Expected SHA-256 hash of the file, in double quotes'),
      'if-none-match': OnlyNew.describe('`*` writes the file only if it does not exist'),
    }),
    rawBody: true,
    reply: CreatedFile,
    errors: [...writeErrors, 'precondition_failed'],
  },
})
