import { withoutNul } from '../../shared/contract/texts.ts'

export interface Schema {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  not?: Schema
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  propertyNames?: Schema
  additionalProperties?: Schema | boolean
  description?: string
  default?: unknown
  format?: string
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  minProperties?: number
  maxProperties?: number
  contentEncoding?: string
  'x-max-bytes'?: number
}

export interface Field {
  name: string
  note: string
  schema: Schema
}

export const fieldsOf = ({ properties = {}, required = [] }: Schema): Field[] =>
  Object.entries(properties).map(([name, schema]) => ({
    name,
    note: required.includes(name) ? '' : 'optional',
    schema,
  }))

export const showFields = (fields: Field[]): string =>
  fields.length === 0 ? '' : `<dl>${fields.map(showField).join('\n')}</dl>`

function showField({ name, note, schema }: Field): string {
  const text = [showType(schema), ...(schema.description ? [words(schema.description)] : [])].join('. ')
  const below = schema.properties ?? schema.items?.properties
  const inner = below ? showFields(fieldsOf(schema.properties ? schema : schema.items!)) : ''
  return `<dt><code>${escapeHtml(name)}</code> <i>${note}</i></dt><dd>${text}${inner}</dd>`
}

export function showType(schema: Schema): string {
  const { $ref, type, enum: values, anyOf, items } = schema
  if ($ref) return link($ref.slice($ref.lastIndexOf('/') + 1))
  if ('const' in schema) return showValue(schema.const)
  const limits = limitsOf(schema)
  if (type === 'array')
    return `list of ${limits.map((limit) => `${limit}: `).join('')}${showType(items ?? {})}`
  const name = values
    ? values.map(showValue).join(' or ')
    : anyOf
      ? anyOf.map(showType).join(', or ')
      : escapeHtml([type ?? 'anything'].flat().join(' or '))
  return [name, ...limits].join(', ')
}

function limitsOf(schema: Schema): string[] {
  const { format, pattern, allOf = [], propertyNames, additionalProperties: values, default: usual } = schema
  // Omits negative patterns, which are hard to read, and the rule against NUL, which applies to every string.
  const patterns = [pattern, ...allOf.map((each) => each.pattern)].filter(
    (each) => each !== undefined && each !== withoutNul && !each.includes('(?!'),
  ) as string[]
  const maxBytes = schema['x-max-bytes']
  const amounts = [
    between(schema.minLength, maxBytes === undefined ? schema.maxLength : undefined, 'character'),
    between(undefined, maxBytes, 'byte'),
    between(schema.minimum, schema.maximum === Number.MAX_SAFE_INTEGER ? undefined : schema.maximum),
    between(schema.minItems, schema.maxItems, 'item'),
    between(undefined, schema.maxProperties, 'entry', 'entries'),
  ]
  const inside = (what: string, each: Schema) => {
    const limits = limitsOf(each)
    return limits.length === 0 ? [] : [`${what} ${limits.join(', ')}`]
  }
  return [
    ...[format, schema.contentEncoding].filter((each) => each !== undefined),
    ...amounts.filter((text) => text !== undefined),
    // A format implies its pattern.
    ...(format === undefined ? patterns.map((each) => `matches <code>${escapeHtml(each)}</code>`) : []),
    ...(propertyNames ? inside('each name', propertyNames) : []),
    ...(typeof values === 'object' ? inside('each value', values) : []),
    ...(usual === undefined ? [] : [`default ${showValue(usual)}`]),
  ]
}

function between(
  min: number | undefined,
  max: number | undefined,
  what = '',
  several = `${what}s`,
): string | undefined {
  const show = (count: number) => count.toLocaleString('en')
  const unit = what === '' ? '' : ` ${(max ?? min) === 1 ? what : several}`
  if (min !== undefined && max !== undefined) return `${show(min)} to ${show(max)}${unit}`
  if (max !== undefined) return `at most ${show(max)}${unit}`
  return min === undefined ? undefined : `at least ${show(min)}${unit}`
}

const showValue = (value: unknown): string => `<code>${escapeHtml(JSON.stringify(value))}</code>`

export const link = (id: string, text = id): string => `<a href="#${escapeHtml(id)}">${escapeHtml(text)}</a>`

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`)

export const words = (text = ''): string => escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>')
