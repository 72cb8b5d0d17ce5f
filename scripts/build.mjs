/** `npm run build`: the client, the one part that needs a build. */
import { buildCli } from './build-cli.mjs'
import { ensureInstalled } from './install.mjs'

try {
  await ensureInstalled()
  await buildCli()
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
