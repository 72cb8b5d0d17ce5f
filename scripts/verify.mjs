/** `npm run verify`: runs all CI checks, even after a failure. The last line is the summary of the tests. */
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
  // Concurrent, because neither keeps two cores busy.
  await Promise.all(checks.map(check))
  if (failed.length > 0) console.log(`These checks failed: ${failed.join(', ')}. Running the tests anyway.`)
  const passed = await test(process.argv.slice(2))
  process.exitCode = passed && failed.length === 0 ? 0 : 1
})
