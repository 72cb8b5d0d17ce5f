/** For `--import`: sets Node's default `requestTimeout` to 2 s instead of 5 minutes. */
import http from 'node:http'
import https from 'node:https'
import { syncBuiltinESMExports } from 'node:module'

const short = { requestTimeout: 2_000, connectionsCheckingInterval: 200 }

for (const module of [http, https]) {
  const { createServer } = module
  module.createServer = (options, listener) =>
    typeof options === 'function'
      ? createServer(short, options)
      : createServer({ ...short, ...options }, listener)
}
syncBuiltinESMExports()
