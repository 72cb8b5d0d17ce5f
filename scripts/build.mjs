/** `npm run build`: the client, the one part that needs a build. */
import { buildCli } from './build-cli.mjs'
import { runScript } from './install.mjs'

await runScript(buildCli)
