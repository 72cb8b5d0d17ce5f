import { addSessionOption, defineCommand } from '../core/command.ts'
import { listen, readPort, waitUntilDestroyed } from '../forward/forward.ts'

export const define = defineCommand({
  declare: (command) =>
    addSessionOption(command)
      .usage('[options] [LOCAL:]PORT…')
      .argument('<port...>', 'a port of the session, or LOCAL:PORT; :PORT picks a free local port'),
  notes: `
Forwards TCP connections from LOCAL on 127.0.0.1 to PORT in the sandbox, where the server may listen on the loopback
interface or on all interfaces. Any protocol over TCP works, including WebSockets and HTTP/2. LOCAL defaults to PORT and
comes first, as in \`kubectl port-forward\` and \`ssh -L\`. Runs until the session ends, or until Ctrl-C.`,
  examples: ['sandlot forward 3000', 'sandlot forward 8080:3000 :5432 -s builder'],
  fields: ['port', 'local_port'],
  list: 'ports',
  handle: async ({ args, session, api, output }) => {
    const wanted = args.map(readPort)
    const id = await session()
    let checkNow = () => {}
    const forwarding = {
      api,
      id,
      note: output.note,
      onFailure(error?: Error) {
        if (error) output.note(`sandlot: ${error.message}`)
        checkNow()
      },
    }
    const ports: Awaited<ReturnType<typeof listen>>[] = []
    try {
      for (const port of wanted) ports.push(await listen(port, forwarding))
      output.result(
        { ports: ports.map(({ local, remote }) => ({ port: remote, local_port: local })) },
        ports.map(({ local, remote }) => `127.0.0.1:${local} -> ${remote}\n`).join(''),
      )
      await waitUntilDestroyed(api, id, (poll) => {
        checkNow = poll
      })
    } finally {
      for (const port of ports) port.close()
    }
  },
})
