import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startWorld } from './support/index.ts'

test('logs contain the ids of requests, accounts and sandboxes, but no client data', async () => {
  await using world = await startWorld({ env: { LOG_LEVEL: 'trace' } })
  const canary = (what: string) => `canary-${what}-7f3a`
  const alice = await world.account({ password: canary('password') })
  const { body } = await alice.call('createSandbox', { body: { env: { E: canary('create-env') } } })
  const params = { id: body.id }
  await alice.call('execCommand', {
    params,
    body: {
      command: ['sh', '-c', `echo ${canary('command')}; cat; exit 3`],
      env: { F: canary('exec-env') },
      stdin: canary('stdin'),
      cwd: '/tmp',
    },
  })
  const path = canary('path')
  await alice.call('createFile', { params, body: { path, content: canary('content') } })
  await alice.call('viewFile', { params, query: { path } })
  await alice.call('viewFile', { params, query: { path: canary('missing') } }).catch(() => {})
  await alice
    .with({ key: `${alice.key.slice(0, -1)}x` })
    .call('getAccount')
    .catch(() => {})
  await alice.call('destroySandbox', { params })
  await Promise.all([...world.apis, ...world.workers].map((process) => process.stop()))

  const logs = readdirSync(world.folder)
    .filter((name) => name.endsWith('.log'))
    .map((name) => readFileSync(join(world.folder, name), 'utf8'))
    .join('\n')
  expect(logs).toContain(alice.id)
  expect(logs).toContain(body.id)
  expect(logs).toMatch(/"request_id":"req_/)
  expect(logs).not.toContain('canary')
  expect(logs).not.toContain(alice.key.slice('sandlot_live_'.length))
  expect(logs).not.toContain(alice.token)
})

test('metrics cover requests, jobs, creates, commands, the queue and sandboxes', async () => {
  await using world = await startWorld()
  const alice = await world.account()
  const { body } = await alice.call('createSandbox')
  await alice.call('execCommand', { params: { id: body.id }, body: { command: ['true'] } })
  const scrape = async (process: { internalUrl: string }) =>
    await (await fetch(`${process.internalUrl}/metrics`)).text()
  const api = await scrape(world.apis[0]!)
  expect(api).toMatch(
    /sandlot_http_request_seconds_count\{[^}]*route="\/v1\/sandboxes\/:id\/exec"[^}]*status="200"[^}]*\} 1/,
  )
  // The client receives its response before the job has ended.
  const isCounted = /sandlot_job_seconds_count\{[^}]*job="createPod"[^}]*outcome="done"/
  const worker = await world.eventually(async () => {
    const text = await scrape(world.workers[0]!)
    return isCounted.test(text) && text
  }, 5_000)
  expect(worker).toMatch(/sandlot_job_seconds_count\{[^}]*job="createPod"[^}]*outcome="done"[^}]*\} 1/)
  expect(worker).toMatch(/sandlot_create_seconds_count\{[^}]*outcome="ready"[^}]*\} 1/)
  expect(worker).toMatch(/sandlot_exec_seconds_count\{[^}]*status="exited"[^}]*\} 1/)
  expect(worker).toMatch(/sandlot_sandboxes\{[^}]*state="ready"[^}]*\} 1/)
  expect(worker).toMatch(/sandlot_queue_jobs\{[^}]*state="delayed"[^}]*\} 1/)
})
