/**
 * Prints a line for each file, all there is to know about each failure, and hands the result of each file to
 * scripts/vitest.mjs, which prints the last line. Run by vitest alone, it prints that line itself.
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

interface FileResult extends Counts {
  /** Relative to the project's root. */
  file: string
  /** What failed in it: full names of tests and groups, or what happened outside of them. */
  failures: string[]
  /** Of its tests and hooks, in milliseconds. */
  ms: number
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
    const { passed, failed, skipped } = count(module)
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
    const files = modules.map((module) => this.resultOf(module))
    let strays = 0
    for (const error of unhandled) {
      this.printError('An error outside every test', error)
      // It belongs to no test, and yet its file did not go well.
      const result = files.find(({ file }) => file === this.fileOf(error))
      if (!result) strays += 1
      else {
        // Of a process that was killed, the tests that it did not come to are counted.
        if (result.failed === 0) result.failed = 1
        result.failures.push(`an error outside every test: ${error.message.split('\n')[0]}`)
      }
    }
    const path = process.env.SANDLOT_TEST_SUMMARY
    if (path !== undefined) return writeFileSync(path, JSON.stringify({ files, strays }))
    const sum = (name: keyof Counts) => files.reduce((all, each) => all + each[name], 0)
    print(`${sum('passed')} passed, ${sum('failed') + strays} failed, ${sum('skipped')} skipped`)
  }

  private resultOf(module: TestModule): FileResult {
    const nameOf = (entity: FailedEntity) =>
      entity.type === 'module' ? 'an error outside every test' : entity.fullName
    return {
      ...count(module),
      file: this.place(module),
      failures: failedEntities(module).map(nameOf),
      ms: module.diagnostic().duration,
    }
  }

  /** The file whose process it came from; of a process that was killed, only the message tells. */
  private fileOf(error: SerializedError): string | undefined {
    const { message } = (error.cause ?? error) as SerializedError
    const path = error.VITEST_TEST_PATH ?? /while running test file (\S+)/.exec(message)?.[1]
    return path === undefined ? undefined : this.relative(String(path))
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
    // What came outside a test has not been read by vitest.
    if (!error.stacks && error.stack) print(indent(stripVTControlCharacters(error.stack)))
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
function count(module: TestModule): Counts {
  const counts = { passed: 0, failed: 0, skipped: 0 }
  for (const test of module.children.allTests()) {
    const { state } = test.result()
    if (state === 'pending') counts.failed += 1
    else counts[state] += 1
  }
  counts.failed += failedEntities(module).filter((entity) => entity.type !== 'test').length
  return counts
}

type FailedEntity = TestModule | TestSuite | TestCase

function failedEntities(module: TestModule): FailedEntity[] {
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
