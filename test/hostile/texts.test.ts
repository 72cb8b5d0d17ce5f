import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { endpoints } from '../../shared/contract/index.ts'
import { limits } from '../../shared/contract/limits.ts'
import { processorMs } from '../support/measure.ts'

/** Texts for which some validators need more than linear time. */
const texts = (length: number): string[] =>
  [' ', '\t ', ...'\u0315\u0300 a@ a. - A = 0 0- { [ * \\ / % \u{1f9c0}'.split(' ')].map(
    (part) => `a${part.repeat(length / part.length)}`,
  )

describe.each(Object.entries<Endpoint>(endpoints))('%s', (_, { query, headers, body, bodyBytes }) => {
  test('any text in any request field is validated quickly', () => {
    const sizes = { query: 128 * 1024, headers: 128 * 1024, body: bodyBytes ?? limits.usualBodyBytes }
    for (const [part, schema] of Object.entries({ query, headers, body })) {
      if (!schema) continue
      const { properties = {} } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
      for (const text of texts(sizes[part as keyof typeof sizes])) {
        const values = [text, [text], { [text.slice(0, 100)]: text }, { a: text }]
        const fields = values.map((value) => mapOf(Object.keys(properties), value))
        const parsing = () => {
          for (const each of [...values, ...fields]) schema.safeParse(each)
        }
        expect(processorMs(parsing), `${part} of ${JSON.stringify(text.slice(0, 9))}`).toBeLessThan(2_000)
      }
    }
  })
})

const mapOf = (names: string[], value: unknown) => Object.fromEntries(names.map((name) => [name, value]))
