/**
 * Prints a line for each file, all there is to know about each failure, and hands the counts to
 * `npm test`, whose last line they are. Run by vitest alone, it prints that line itself.
 */
import { writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { SerializedError, TestCase, TestModule, TestSuite, Vitest } from 'vitest/node'

interface Counts {
  passed: number
  failed: number
  skipped: number
}

/** A test that takes longer than this is named with its time. */
const slowMs = 2_000

export default class PlainReporter {
  vitest?: Vitest

  onInit(vitest: Vitest) {
    this.vitest = vitest
  }

  onUserConsoleLog({ content }: { content: string }) {
    process.stderr.write(content)
  }

  onTestModuleEnd(module: TestModule) {
    const { passed, failed, skipped } = count([module])
    const parts = [`${passed} passed`, failed > 0 && `${failed} failed`, skipped > 0 && `${skipped} skipped`]
    const words = parts.filter((part) => part !== false).join(', ')
    print(
      `${failed > 0 ? 'FAIL' : 'ok  '} ${this.place(module)}  ${words}, ${seconds(module.diagnostic().duration)}`,
    )
    for (const test of module.children.allTests()) {
      const duration = test.diagnostic()?.duration ?? 0
      if (duration > slowMs) print(`       ${seconds(duration)}  ${test.fullName}`)
    }
    this.printFailures(module)
  }

  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandled: ReadonlyArray<SerializedError>) {
    for (const error of unhandled) this.printError('An error outside every test', error)
    const counts = count(modules)
    // It belongs to no test, and yet the run did not go well.
    counts.failed += unhandled.length
    const file = process.env.SANDLOT_TEST_SUMMARY
    if (file !== undefined) writeFileSync(file, JSON.stringify(counts))
    else
      print(
        `${counts.passed} passed, ${counts.failed} failed${counts.skipped ? `, ${counts.skipped} skipped` : ''}`,
      )
  }

  private printFailures(module: TestModule) {
    for (const entity of failedEntities(module)) {
      for (const error of errorsOf(entity)) {
        this.printError(entity.type === 'module' ? this.place(module) : entity.fullName, error)
      }
    }
  }

  private printError(title: string, error: SerializedError) {
    print(`\n  ✗ ${title}`)
    print(indent(stripVTControlCharacters(`${error.name ?? 'Error'}: ${error.message}`)))
    if (error.diff) print(indent(stripVTControlCharacters(String(error.diff))))
    for (const { file, line, column, method } of error.stacks ?? []) {
      print(indent(`at ${method || '?'} ${this.relative(file)}:${line}:${column}`))
    }
    if (error.cause) this.printError('caused by', error.cause as SerializedError)
    print('')
  }

  private place(module: TestModule) {
    return this.relative(module.moduleId)
  }

  private relative(path: string) {
    return relative(this.vitest?.config.root ?? process.cwd(), path)
  }
}

/** A file or a group that fails outside its tests (a hook, an import) counts as one failure more. */
function count(modules: ReadonlyArray<TestModule>): Counts {
  const counts = { passed: 0, failed: 0, skipped: 0 }
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      if (state === 'pending') counts.failed += 1
      else counts[state] += 1
    }
    counts.failed += failedEntities(module).filter((entity) => entity.type !== 'test').length
  }
  return counts
}

function failedEntities(module: TestModule): (TestModule | TestSuite | TestCase)[] {
  const all = [module, ...module.children.allSuites(), ...module.children.allTests()]
  return all.filter((entity) => errorsOf(entity).length > 0)
}

function errorsOf(entity: TestModule | TestSuite | TestCase): ReadonlyArray<SerializedError> {
  if (entity.type !== 'test') return entity.errors()
  const result = entity.result()
  return result.state === 'failed' ? result.errors : []
}

function print(line: string) {
  process.stdout.write(`${line}\n`)
}

function indent(text: string) {
  return text.replace(/^/gm, '    ')
}

function seconds(milliseconds: number) {
  return `${(milliseconds / 1000).toFixed(1)} s`
}
