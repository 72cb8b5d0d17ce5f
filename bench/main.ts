/**
 * `npm run bench`: measures Sandlot and its alternatives, and writes bench/RESULTS.md.
 *   KUBECONFIG=… SANDBOX_IMAGE=… [KUBECTL=…] npm run bench [-- PART…]
 * Runs all parts by default. Some need administrator rights on a cluster. Use an otherwise idle machine.
 */
import { limits } from './accounts.ts'
import { burst } from './burst.ts'
import { create } from './create.ts'
import { credentials } from './credentials.ts'
import { exec } from './exec.ts'
import { fleet } from './fleet.ts'
import { jobs } from './jobs.ts'
import { local } from './local.ts'
import { memory } from './memory.ts'
import { offeredCommands, offeredCreates, offeredReads } from './offered-load.ts'
import { writeDown } from './page.ts'
import type { Part } from './part.ts'
import { requests } from './requests.ts'
import { scale } from './scale.ts'
import { start } from './start.ts'
import { throughput } from './throughput.ts'

const parts: Record<string, Part> = {
  create,
  burst,
  exec,
  throughput,
  'offered-creates': offeredCreates,
  'offered-commands': offeredCommands,
  'offered-reads': offeredReads,
  local,
  requests,
  credentials,
  jobs,
  limits,
  memory,
  start,
  scale,
  fleet,
}

const names = Object.keys(parts)
const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !names.includes(name))
if (unknown.length > 0) {
  console.error(`Unknown part ${unknown.join(', ')}. The parts are ${names.join(', ')}.`)
  process.exit(2)
}

let isMet = true
for (const name of asked.length > 0 ? asked : names) {
  const part = parts[name]!
  if (part.needsCluster && !process.env.KUBECONFIG) {
    console.log(`\n${name} needs a cluster: KUBECONFIG=… SANDBOX_IMAGE=… npm run bench -- ${name}`)
    continue
  }
  if (part.needs?.some((variable) => !process.env[variable])) {
    console.log(`\n${name} needs ${part.needs.join(' and ')}, as described in bench/${name}.ts`)
    continue
  }
  const findings = await part.measure()
  console.log(`\n${writeDown(name, part, findings, names)}`)
  isMet &&= findings.verdicts?.every(({ met }) => met) ?? true
}
process.exit(isMet ? 0 : 1)
