/**
 * `npm run verify`: everything that CI checks. Types, lint and format, then the tests; all of them
 * run, so that one go shows everything, and the tests' closing line stays the last.
 */
import { runScript } from './install.mjs'
import { projectNode, runOnNode } from './project-node.mjs'
import { root } from './root.mjs'
import { test } from './test.mjs'

const checks = [
  { name: 'types', args: ['node_modules/typescript/bin/tsc', '--noEmit'] },
  { name: 'lint and format', args: ['node_modules/@biomejs/biome/bin/biome', 'check', '.'] },
]

await runScript(async () => {
  process.chdir(root)
  const failed = []
  const check = async ({ name, args }) => {
    const code = await runOnNode(projectNode(), args)
    console.log(`${name}: ${code === 0 ? 'ok' : 'FAILED'}`)
    if (code !== 0) failed.push(name)
  }
  // At once: neither keeps two cores busy to its end.
  await Promise.all(checks.map(check))
  if (failed.length > 0) console.log(`Failed before the tests: ${failed.join(', ')}.`)
  const passed = await test(process.argv.slice(2))
  process.exitCode = passed && failed.length === 0 ? 0 : 1
})
