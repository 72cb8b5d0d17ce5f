#!/usr/bin/node
/**
 * The entry point of the image: `sandlot-server api`, `worker`, `migrate` or `admin …`. Its bundles are in the same
 * folder.
 */
const commands = ['api', 'worker', 'migrate', 'admin']
const [command] = process.argv.splice(2, 1)

if (!commands.includes(command)) {
  console.error(`Usage: sandlot-server ${commands.join(' | ')} [argument …]`)
  process.exit(2)
}
await import(`./${command}.mjs`)
