#!/usr/bin/node
/** What the image starts: `sandlot-server api`, `worker`, `migrate` or `admin …`. Its bundles lie beside it. */
const commands = ['api', 'worker', 'migrate', 'admin']
const [command] = process.argv.splice(2, 1)

if (!commands.includes(command)) {
  console.error(`Usage: sandlot-server ${commands.join(' | ')} [argument …]`)
  process.exit(2)
}
await import(`./${command}.mjs`)
