import { ports as contract } from '../../shared/contract/ports.ts'
import { answered, route } from '../http/route.ts'
import { requireUpgrade } from '../http/websocket.ts'
import { awaitRunning } from '../sandboxes/load-sandbox.ts'
import { reportLost } from '../worker-client/client.ts'
import { join } from '../worker-client/tunnel.ts'

export const connectPort = route(contract.connectPort, async (call, app) => {
  const upgrade = requireUpgrade(call)
  const { account, params, requestId, signal } = call
  const own = { accountId: account.id, sandboxId: params.id }
  await awaitRunning(app, { ...own, signal })
  // The key may have been revoked while the request waited for its sandbox.
  await account.again()
  const tunnel = await app.workers
    .connectPort({ ...own, requestId, port: params.port }, call.request.headers, signal)
    .catch(reportLost('The worker that was opening the connection is not responding. Try again.'))
  join(upgrade, tunnel)
  return answered
})
