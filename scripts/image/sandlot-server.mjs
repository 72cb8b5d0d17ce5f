#!/usr/bin/node
/** The image's entry point: `sandlot-server api`, `worker`, `migrate` or `admin …`. */
const commands = ['api', 'worker', 'migrate', 'admin']
const [command] = process.argv.splice(2, 1)

if (!commands.includes(command)) {
  console.error(`Usage: sandlot-server ${commands.join(' | ')} [argument …]`)
  process.exit(2)
}
await import(`./${command}.mjs`)
