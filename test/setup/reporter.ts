/** Writes results for scripts/vitest.mjs. vitest's JSON reporter omits errors outside of tests. */
import { writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import type { SerializedError, TestCase, TestModule, TestSuite } from 'vitest/node'
import { root } from '../../scripts/root.mjs'

export default class SummaryReporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandledErrors: ReadonlyArray<SerializedError>) {
    const path = process.env.SANDLOT_TEST_SUMMARY
    if (path === undefined) return
    const summary = { files: modules.map(summarize), strays: unhandledErrors.length }
    writeFileSync(path, JSON.stringify(summary))
  }
}

function summarize(module: TestModule) {
  const tests = [...module.children.allTests()]
  const count = (...states: string[]) => tests.filter((test) => states.includes(test.result().state)).length
  // Failed hooks and imports are errors outside of tests.
  const outside = [module, ...module.children.allSuites()].filter((entity) => entity.errors().length > 0)
  const failed = tests.filter((test) => ['failed', 'pending'].includes(test.result().state))
  return {
    file: relative(root, module.moduleId),
    passed: count('passed'),
    skipped: count('skipped'),
    failed: failed.length + outside.length,
    failures: [...outside, ...failed].map(nameOf),
  }
}

const nameOf = (entity: TestModule | TestSuite | TestCase) =>
  entity.type === 'module' ? 'an error outside of its tests' : entity.fullName
