#!/usr/bin/env node
// This file has no static imports, so that the client starts quickly.

/** Oldest supported Node version, which the build takes from `engines` in cli/package.json. */
declare const oldestNode: string
/** Version in package.json. */
declare const clientVersion: string
const args = process.argv.slice(2)

if (isTooOld(process.versions.node)) {
  process.stderr.write(
    `sandlot: Node ${oldestNode} or later is required, and this is Node ${process.versions.node}.\n`,
  )
  process.exitCode = 1
} else {
  // The cache is next to the code, so that both are removed together. Node 20 has no compile cache.
  process.getBuiltinModule?.('node:module').enableCompileCache?.(`${import.meta.dirname}/cache`)
  // Node 20 lacks Promise.withResolvers.
  Promise.withResolvers ??= withResolvers
  if (args.length === 1 && ['--version', '-V', 'version'].includes(args[0]!)) {
    process.stdout.write(`${clientVersion}\n`)
  } else {
    const { runProgram } = await import('./program.ts')
    process.exitCode = await runProgram(args)
  }
}

function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [minMajor = 0, minMinor = 0] = oldestNode.split('.').map(Number)
  return major < minMajor || (major === minMajor && minor < minMinor)
}

function withResolvers<T>(): PromiseWithResolvers<T> {
  let settle: Omit<PromiseWithResolvers<T>, 'promise'>
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject }
  })
  return { promise, ...settle! }
}
