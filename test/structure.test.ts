import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '..')

/** Tracked and new source files, relative to the root. */
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => /\.(ts|tsx|mjs)$/.test(file) && existsSync(join(root, file)))

const sources = new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]))

interface Import {
  from: string
  /** File path or package name. */
  to: string
  typeOnly: boolean
  /** True for a dynamic `import('…')`. */
  later: boolean
}

const imports: Import[] = [...sources].flatMap(([from, text]) =>
  [
    ...text.matchAll(
      /(?:^|\n)(?:import|export)\s+(type\s+)?[^'"\n]*?(?:\{[^}]*\}[^'"]*?)?from\s+'([^']+)'|import\(\s*'([^']+)'|\nimport\s+'([^']+)'/g,
    ),
  ].map((match) => {
    const name = (match[2] ?? match[3] ?? match[4])!
    const to = name.startsWith('.') ? relative(root, resolve(root, dirname(from), name)) : name
    return { from, to, typeOnly: match[1] !== undefined, later: match[3] !== undefined }
  }),
)

const importsOf = new Map(files.map((file) => [file, imports.filter(({ from }) => from === file)]))

const folderOf = (file: string) => file.split('/')[0]!

const mayImport: Record<string, string[]> = {
  shared: [],
  migrations: ['shared'],
  api: ['shared'],
  workers: ['shared'],
  cli: ['shared'],
  scripts: ['api', 'workers', 'shared', 'cli'],
  bench: ['api', 'workers', 'shared', 'cli', 'migrations', 'scripts', 'test'],
  test: ['api', 'workers', 'shared', 'cli', 'migrations', 'scripts'],
}

test('the structure tests find the source files and their imports', () => {
  expect(files.length).toBeGreaterThan(60)
  expect(imports).toContainEqual({
    from: 'api/main.ts',
    to: 'shared/platform/settings.ts',
    typeOnly: false,
    later: false,
  })
  expect(imports).toContainEqual({
    from: 'workers/drivers/open.ts',
    to: 'workers/drivers/local/index.ts',
    typeOnly: false,
    later: true,
  })
})

test('every folder with source files has an import rule', () => {
  const folders = new Set(files.filter((file) => file.includes('/')).map(folderOf))
  expect([...folders].sort()).toEqual(Object.keys(mayImport).sort())
})

test('imports between folders follow the import rules', () => {
  const wrong = imports.filter(({ from, to }) => {
    // `npx sandlot` builds a missing client first.
    if (from === 'cli/sandlot.mjs') return false
    const [own, other] = [folderOf(from), folderOf(to)]
    if (!(other in mayImport) || own === other || !(own in mayImport)) return false
    return !mayImport[own]!.includes(other)
  })
  expect(wrong).toEqual([])
})

/** ARCHITECTURE.md's subfolders, in order, and the siblings that each one may import. */
const subfolders = new Map(
  [
    ...readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8').matchAll(
      /^\| `(\w+)\/([\w-]+)\/` \| .* \| (.*) \|$/gm,
    ),
  ].map(([, folder, subfolder, siblings]) => [
    `${folder}/${subfolder}`,
    siblings === 'nothing' ? [] : siblings!.split(', ').map((sibling) => `${folder}/${sibling}`),
  ]),
)
const foldersWithSubfolders = ['api', 'cli', 'shared', 'workers']

test('imports between subfolders follow the table in ARCHITECTURE.md', () => {
  const subfolderOf = (file: string) => file.split('/').slice(0, 2).join('/')
  const wrong = imports.filter(({ from, to }) => {
    const [own, other] = [subfolderOf(from), subfolderOf(to)]
    const allowed = subfolders.get(own)
    if (!allowed || !subfolders.has(other) || own === other || folderOf(own) !== folderOf(other)) return false
    return !allowed.includes(other)
  })
  expect(wrong).toEqual([])
})

test('ARCHITECTURE.md lists each subfolder above the subfolders that it imports', () => {
  const order = [...subfolders.keys()]
  const upwards = [...subfolders].filter(([subfolder, siblings]) =>
    siblings.some((sibling) => order.indexOf(sibling) < order.indexOf(subfolder)),
  )
  expect(upwards).toEqual([])
})

test('only the listed entry points and composition files are outside the subfolders', () => {
  const loose = files.filter((file) => {
    const [folder, subfolder, name] = file.split('/')
    return foldersWithSubfolders.includes(folder!) && !(name && subfolders.has(`${folder}/${subfolder}`))
  })
  expect(loose.sort()).toEqual([
    'api/app.ts',
    'api/main.ts',
    'api/server.ts',
    'cli/main.ts',
    'cli/program.ts',
    'cli/sandlot.mjs',
    'workers/handlers.ts',
    'workers/main.ts',
    'workers/worker.ts',
  ])
})

test('there are no import cycles, even through dynamic imports', () => {
  const done = new Set<string>()
  const cycles: string[][] = []
  const visit = (file: string, way: string[]) => {
    if (way.includes(file)) cycles.push([...way.slice(way.indexOf(file)), file])
    if (way.includes(file) || done.has(file)) return
    for (const { to } of importsOf.get(file) ?? []) visit(to, [...way, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])
  expect(cycles).toEqual([])
})

test('the contract does no I/O, and the client imports only the contract and shared/lib', () => {
  // Callers pass the values whose types are imported.
  const inContract = imports.filter(({ from, typeOnly }) => from.startsWith('shared/contract/') && !typeOnly)
  const withoutIo = ['zod', 'eventsource-parser']
  expect(
    inContract.filter(({ to }) => !/^shared\/(contract|lib)\//.test(to) && !withoutIo.includes(to)),
  ).toEqual([])
  const inClient = imports.filter(({ from, to }) => folderOf(from) === 'cli' && folderOf(to) === 'shared')
  expect(inClient.filter(({ to }) => !/^shared\/(contract|lib)\//.test(to))).toEqual([])
})

test('only one module uses the Kubernetes API', () => {
  const talking = imports.filter(({ to }) => to.startsWith('@kubernetes/') || to === 'undici')
  const elsewhere = talking.filter(
    ({ from }) =>
      !from.startsWith('workers/drivers/kubernetes/') && !['test', 'bench'].includes(folderOf(from)),
  )
  expect(talking.length).toBeGreaterThan(0)
  expect(elsewhere).toEqual([])
})

test('only the module that opens a driver imports the drivers', () => {
  const outside = imports.filter(
    ({ from, to }) => /^workers\/drivers\/(local|kubernetes)\//.test(to) && dirname(from) !== dirname(to),
  )
  const fromOurs = outside.filter(({ from }) => folderOf(from) === 'workers' || folderOf(from) === 'api')
  expect(fromOurs.map(({ from }) => from)).toEqual(['workers/drivers/open.ts', 'workers/drivers/open.ts'])
})

test('only one module deletes pods, and it checks their owner first', () => {
  const deleting = [...sources].filter(
    ([file, text]) =>
      file.startsWith('workers/') && !file.startsWith('workers/drivers/') && /driver\.delete\(/.test(text),
  )
  expect(deleting.map(([file]) => file)).toEqual(['workers/pods/remove-pod.ts'])
})

test('shared test modules register no hooks', () => {
  const shared = [...sources].filter(
    ([file]) => file.startsWith('test/') && !/\.(test|soak)\.tsx?$/.test(file),
  )
  expect(shared.map(([file]) => file)).toContain('test/support/shared.ts')
  const hooks = /^(?:before|after|around)(?:All|Each)\(/m
  expect(shared.filter(([, text]) => hooks.test(text)).map(([file]) => file)).toEqual([])
})

test('only entry points and the settings module read the environment', () => {
  const readers = [...sources].filter(([, text]) => text.includes('process.env')).map(([file]) => file)
  const services = readers.filter((file) =>
    ['api', 'workers', 'shared', 'migrations'].includes(folderOf(file)),
  )
  expect(services.sort()).toEqual([
    'api/main.ts',
    'migrations/run.ts',
    'shared/platform/settings.ts',
    'workers/drivers/kubernetes/install.ts',
    // Runs inside the sandbox, with the sandbox's environment.
    'workers/drivers/local/agent.mjs',
    'workers/main.ts',
  ])
})

test('SQL statements are typed and defined in shared/data', () => {
  const ours = [...sources].filter(([file]) =>
    ['api', 'workers', 'shared', 'scripts', 'migrations'].includes(folderOf(file)),
  )
  // Rows from plain SQL have unchecked types.
  expect(ours.filter(([, text]) => /\.query[<(]/.test(text)).map(([file]) => file)).toEqual([
    'shared/data/database.ts',
    'shared/data/pipelined-reads.ts',
  ])
  const elsewhere = ours.filter(
    ([file, text]) => !file.startsWith('shared/data/') && text.includes('shared/data/statement.ts'),
  )
  expect(elsewhere.map(([file]) => file)).toEqual(['migrations/progress.ts'])
})

test('only one file writes to each table', () => {
  const entities = sources.get('shared/data/entities.ts')!
  const tables = [...entities.matchAll(/tableName: '(\w+)'/g)].map(([, table]) => table!)
  // Includes Kysely's builders and SQL templates.
  const writing =
    /\b(?:insertInto|updateTable|deleteFrom)\('(\w+)'|\b(?:insert into|delete from) (\w+)|\bupdate (\w+)\s+set\b/g
  const written = new Map(tables.map((table) => [table, new Set<string>()]))
  for (const [file, text] of sources) {
    if (!['api', 'workers', 'shared', 'scripts'].includes(folderOf(file))) continue
    for (const [, built, changed, updated] of text.matchAll(writing)) {
      written.get((built ?? changed ?? updated)!)?.add(file)
    }
  }
  expect(tables).toContain('exec')
  // Only a trigger writes to this table.
  expect(written.get('sandbox_label')).toEqual(new Set())
  written.delete('sandbox_label')
  const inOne = [...written.keys()].map((table) => [
    table,
    [expect.stringMatching(/^shared\/data\/\S+\.ts$/)],
  ])
  expect([...written].map(([table, files]) => [table, [...files]])).toEqual(inOne)
})

test('the names of SQL statements are unique', () => {
  const names = [...sources].flatMap(([file, text]) =>
    (file.startsWith('shared/data/') && file !== 'shared/data/statement.ts') ||
    file === 'migrations/progress.ts'
      ? [...text.matchAll(/\b(?:done|first|hasRow|only|rows)(?:<[^(]*>)?\(\)\(\s*'([^']+)'/g)].map(
          ([, name]) => name,
        )
      : [],
  )
  expect(names.length).toBeGreaterThan(60)
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
})

test('constants use camel case, except for external names', () => {
  const names = [...sources.values()].flatMap((text) =>
    [...text.matchAll(/^\s*(?:export )?const ([A-Z][A-Z\d_]+)\b(?= *[:=])/gm)].map(([, name]) => name!),
  )
  const ofTheKernel = ['AF_VSOCK', 'ENOSYS', 'EPERM', 'O_CLOEXEC', 'O_PATH']
  const ofTheEnvironment = ['JWT_SECRET', 'KUBECONFIG', 'SECRETS_KEY']
  expect([...new Set(names)].sort()).toEqual([...ofTheKernel, ...ofTheEnvironment].sort())
})

test('no file has more than 400 lines', () => {
  const long = [...sources].filter(([, text]) => text.split('\n').length > 400)
  expect(long.map(([file]) => file)).toEqual([])
})

test('code that listens for an abort also handles a signal that is already aborted', () => {
  const listening = [...sources].filter(([file, text]) => {
    return ['api', 'workers', 'shared'].includes(folderOf(file)) && /addEventListener\(\s*'abort'/.test(text)
  })
  // `addAbortListener` of node:events also handles a signal that was aborted earlier.
  expect(listening.map(([file]) => file)).toEqual([])
})
