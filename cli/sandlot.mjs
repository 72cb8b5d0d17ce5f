#!/usr/bin/env node
/**
 * Starts the client from a clone of the repository. If needed, installs and builds it, and switches to the
 * project's Node version.
 * Plain JavaScript that also runs on Node 20.
 */
const oldest = 22

if (Number(process.versions.node.split('.')[0]) < oldest) await runAgain()
else await runClient()

async function runClient() {
  try {
    await import('./dist/main.js')
  } catch (error) {
    const isMissing = error.code === 'ERR_MODULE_NOT_FOUND' && error.url?.endsWith('/cli/dist/main.js')
    if (!isMissing) throw error
    await prepare(async () => {
      const { buildCli } = await import('../scripts/build-cli.mjs')
      await buildCli()
    })
    await import('./dist/main.js')
  }
}

async function runAgain() {
  await prepare(async () => {
    const { projectNode, runOnNode } = await import('../scripts/project-node.mjs')
    const { fileURLToPath } = await import('node:url')
    const args = [fileURLToPath(import.meta.url), ...process.argv.slice(2)]
    process.exitCode = await runOnNode(projectNode(), args)
  })
}

/** Installs missing dependencies, then calls `run`. Prints any error to stderr, and exits with status 1. */
async function prepare(run) {
  try {
    const { ensureInstalled } = await import('../scripts/install.mjs')
    await ensureInstalled()
    await run()
  } catch (error) {
    console.error(error.message)
    process.exit(1)
  }
}
