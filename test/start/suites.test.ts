import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../../scripts/root.mjs'
import { onlyLocal, suites } from '../../vitest.soak.config.ts'

test('--driver kubernetes skips exactly the suites that need the local driver', () => {
  const read = (file: string) => readFileSync(join(root, file), 'utf8')
  const knowsCluster = (file: string) => {
    const own = read(file)
    const parts = [...own.matchAll(/from '(\.\/(?!support)[^']+)'/g)].map(([, part = '']) =>
      read(join(dirname(file), part)),
    )
    return [own, ...parts].some((text) =>
      /hasCluster|describeOn|describeInSandboxes|driver: 'kubernetes'/.test(text),
    )
  }
  const filesOf = (patterns: string[]) => globSync(patterns, { cwd: root }).sort()
  expect(filesOf(onlyLocal)).toEqual(filesOf(suites).filter((file) => !knowsCluster(file)))
})
