import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { tryPairs } from '../support/pairs.ts'
import { shareWorld } from '../support/shared.ts'
import { pickersSettings } from './pairs.ts'

const world = shareWorld({ workers: 0 })

test('the picker does not make a session current if the saved account has changed', async () => {
  const settings = pickersSettings(world)
  const place = await settings.make()
  const key = `sandlot_live_${'x'.repeat(49)}`
  expect(await place.home.run(['config', 'set-key', key])).toMatchObject({ code: 0 })
  const saved = readFileSync(place.home.configFile, 'utf8')
  expect(await settings.operations['use in the picker']!(place)).toBe('refused')
  expect(readFileSync(place.home.configFile, 'utf8')).toBe(saved)
  await settings.end?.(place)
})

test('making a session current in the picker does not conflict with other settings changes', () =>
  tryPairs(pickersSettings(world), { rounds: 1, concurrency: 2 }))
