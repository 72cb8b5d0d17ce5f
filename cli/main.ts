#!/usr/bin/env node
/** `sandlot`, the terminal client. This file loads nothing else before it is needed, so that the client starts quickly. */
import { enableCompileCache } from 'node:module'

// Compiled code is kept beside the code, so that both are removed together; where nobody may write, there is
// none. Node 22.0 knows no such thing.
enableCompileCache?.(`${import.meta.dirname}/cache`)
const args = process.argv.slice(2)

if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
  const { version } = await import('./core/version.ts')
  process.stdout.write(`${version}\n`)
} else {
  const { runProgram } = await import('./core/program.ts')
  process.exitCode = await runProgram(args)
}
