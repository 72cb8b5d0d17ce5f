#!/usr/bin/env node
/** `sandlot`, the terminal client. This file imports nothing at its top, so that the client starts quickly. */

/** The oldest supported Node, which the build takes from `engines` of package.json. */
declare const oldestNode: string
const args = process.argv.slice(2)

if (isTooOld(process.versions.node)) {
  process.stderr.write(
    `sandlot: This is Node ${process.versions.node}, and sandlot needs Node ${oldestNode} or later.\n`,
  )
  process.exitCode = 1
} else {
  // The compile cache lies beside the code, so that both are removed together. It is missing if the folder is not
  // writable, and before Node 22.1.
  process.getBuiltinModule?.('node:module').enableCompileCache?.(`${import.meta.dirname}/cache`)
  // Node 20 lacks it.
  Promise.withResolvers ??= withResolvers
  if (args.length === 1 && ['--version', '-V', 'version'].includes(args[0]!)) {
    const { version } = await import('./core/version.ts')
    process.stdout.write(`${version}\n`)
  } else {
    const { runProgram } = await import('./program.ts')
    process.exitCode = await runProgram(args)
  }
}

function isTooOld(version: string): boolean {
  const [[major = 0, minor = 0], [least = 0, minMinor = 0]] = [numbersOf(version), numbersOf(oldestNode)]
  return major < least || (major === least && minor < minMinor)
}

function numbersOf(version: string): number[] {
  return version.split('.').map(Number)
}

function withResolvers<T>(): PromiseWithResolvers<T> {
  let settle: Omit<PromiseWithResolvers<T>, 'promise'>
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject }
  })
  return { promise, ...settle! }
}
