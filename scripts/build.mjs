import { buildCli } from './build-cli.mjs'
import { runScript } from './install.mjs'

await runScript(buildCli)
