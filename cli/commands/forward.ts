import { addSessionOption, defineCommand } from '../core/command.ts'
import { listen } from '../forward/listen.ts'
import { readPort } from '../forward/ports.ts'
import { waitForSessionEnd } from '../forward/wait-for-end.ts'

export const define = defineCommand({
  declare: (command) =>
    addSessionOption(command)
      .usage('[options] [LOCAL:]PORT…')
      .argument('<port...>', 'a port of the session, or LOCAL:PORT; with :PORT any free one of this machine'),
  notes: `
Connections to LOCAL on 127.0.0.1 go to PORT in the sandbox, whether what listens there does so on its loopback
interface or on all. All of TCP passes, such as WebSockets and HTTP/2. Without LOCAL it is the same port. The
order is that of \`kubectl port-forward\` and \`ssh -L\`. Goes on until the session ends, or Ctrl-C.`,
  examples: ['sandlot forward 3000', 'sandlot forward 8080:3000 :5432 -s builder'],
  fields: ['port', 'local_port'],
  list: 'ports',
  handle: async ({ args, session, api, output }) => {
    const wanted = args.map(readPort)
    const id = await session()
    let look = () => {}
    const forwarding = {
      api,
      id,
      note: output.note,
      onFailure(error?: Error) {
        if (error) output.note(`sandlot: ${error.message}`)
        look()
      },
    }
    const ports: Awaited<ReturnType<typeof listen>>[] = []
    try {
      for (const port of wanted) ports.push(await listen(port, forwarding))
      output.result(
        { ports: ports.map(({ local, remote }) => ({ port: remote, local_port: local })) },
        ports.map(({ local, remote }) => `127.0.0.1:${local} -> ${remote}\n`).join(''),
      )
      await waitForSessionEnd(api, id, (lookNow) => {
        look = lookNow
      })
    } finally {
      for (const port of ports) port.close()
    }
  },
})
