/** `sandlot`, the terminal client. This file starts at once: all else loads when it is needed. */
const args = process.argv.slice(2)

if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
  const { version } = await import('./version.ts')
  process.stdout.write(`${version}\n`)
} else {
  const { runProgram } = await import('./program.ts')
  process.exitCode = await runProgram(args)
}
