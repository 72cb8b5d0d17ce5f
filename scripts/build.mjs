/** `npm run build`: builds the client. No other code needs a build. */
import { buildCli } from './build-cli.mjs'
import { runScript } from './install.mjs'

await runScript(buildCli)
