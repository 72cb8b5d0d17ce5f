import type { Redis } from 'ioredis'
import { type KeyHolder, type KeyName, keyNames, listKeyHolders } from '../../shared/rpc/key-holders.ts'
import { type Report, showColumns } from './report.ts'

interface Missing {
  key: KeyName
  fingerprint: string
  processes: string[]
}

export async function listKeys(redis: Redis): Promise<Report> {
  const data = (await listKeyHolders(redis)).sort((a, b) =>
    a.kind === b.kind ? a.place.localeCompare(b.place) : a.kind < b.kind ? -1 : 1,
  )
  const missing = keyNames.flatMap((key) => missingOf(key, data))
  const lines = [
    ['PROCESS', 'KIND', ...keyNames],
    ...data.map(({ place, kind, keys }) => [
      place,
      kind,
      ...keyNames.map((name) => keys[name].join(' ') || '-'),
    ]),
  ]
  const findings = missing.map(
    ({ key, fingerprint, processes }) => `${key} ${fingerprint} is missing from ${processes.join(', ')}`,
  )
  if (data.length === 0)
    findings.push(
      'No process has registered its keys. Check that all processes are running and use the same Redis server.',
    )
  else if (missing.length === 0) findings.push('No process is missing a key.')
  return { value: { data, missing }, text: [...showColumns(lines), '', ...findings].join('\n') }
}

const holders: Record<KeyName, readonly KeyHolder['kind'][]> = {
  JWT_SECRET: ['api'],
  SECRETS_KEY: ['worker'],
  RPC_KEY: ['api', 'worker'],
}

function missingOf(key: KeyName, all: KeyHolder[]): Missing[] {
  const expected = all.filter(({ kind }) => holders[key].includes(kind))
  // Every worker must be able to decrypt data that any API process has encrypted.
  const known = new Set(all.flatMap(({ keys }) => keys[key]))
  return [...known]
    .map((fingerprint) => ({
      key,
      fingerprint,
      processes: expected.filter(({ keys }) => !keys[key].includes(fingerprint)).map(({ place }) => place),
    }))
    .filter(({ processes }) => processes.length > 0)
}
