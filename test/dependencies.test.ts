import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { build, stop } from 'esbuild'
import { afterAll, expect, test } from 'vitest'
import { root } from '../scripts/root.mjs'
import { serverBundle } from '../scripts/server-bundle.ts'

afterAll(stop)

test('the production dependencies are exactly the packages that the server imports', async () => {
  const { metafile } = await build({
    ...serverBundle,
    entryPoints: [
      'api/main.ts',
      'workers/main.ts',
      'workers/drivers/kubernetes/install.ts',
      'migrations/run.ts',
      'scripts/admin.ts',
    ],
    outdir: 'dist/none',
    packages: 'external',
    metafile: true,
    write: false,
  })
  const paths = Object.values(metafile.outputs).flatMap(({ imports }) =>
    imports.filter(({ external }) => external).map(({ path }) => path),
  )
  const packages = paths
    .filter((path) => !isBuiltin(path))
    .map((path) => path.split('/', path.startsWith('@') ? 2 : 1).join('/'))
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  expect([...new Set(packages)].sort()).toEqual(Object.keys(dependencies).sort())
})
