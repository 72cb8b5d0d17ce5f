import * as z from 'zod'
import { settingGroups } from '../../shared/platform/settings-schema.ts'
import { code, table } from './table.ts'

/** JSON Schema of a setting. `unset` is the text, if any, that docs/settings.md shows as the default. */
interface DescribedSetting {
  description?: string
  default?: unknown
  unset?: string
  enum?: string[]
  minimum?: number
  maximum?: number
}

export const settings = (): string =>
  Object.entries(settingGroups)
    .map(([title, group]) => `## ${title}\n\n${table(['setting', 'default', 'description'], rowsOf(group))}`)
    .join('\n\n')

function rowsOf(group: z.ZodRawShape): string[][] {
  const { properties = {}, required = [] } = z.toJSONSchema(z.object(group), { io: 'input' })
  return Object.entries(properties as Record<string, DescribedSetting>).map(([name, setting]) => {
    if (!setting.description) throw new Error(`The setting ${name} needs a description.`)
    return [
      code(name),
      required.includes(name) ? '**required**' : defaultOf(setting),
      [setting.description, valuesOf(setting)].filter((text) => text !== '').join(' '),
    ]
  })
}

const defaultOf = ({ unset, default: value }: DescribedSetting): string =>
  unset ?? (value === undefined ? 'none' : code(String(value)))

function valuesOf({ enum: choices, minimum, maximum }: DescribedSetting): string {
  if (choices) return `One of ${choices.map(code).join(', ')}.`
  const isLimited = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER
  if (isLimited) return `From ${minimum} to ${maximum}.`
  return minimum !== undefined && minimum > 1 ? `At least ${minimum}.` : ''
}
