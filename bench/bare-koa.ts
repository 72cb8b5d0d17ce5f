/** Baseline: a Koa server with a fixed response, as large as the JSON of a sandbox. */
import Koa from 'koa'

const sandbox = { id: `sbx_${'0'.repeat(26)}`, state: 'active', metadata: {}, filler: 'x'.repeat(400) }
const koa = new Koa()
koa.use((ctx) => {
  ctx.body = sandbox
})
const server = koa.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as { port: number }
  console.log(JSON.stringify({ msg: 'listening', port }))
})
process.on('SIGTERM', () => process.exit(0))
