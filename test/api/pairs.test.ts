/** Two concurrent requests for one object have the result of some sequential order. */
import { describe } from 'vitest'
import { testPairs } from './pairs.ts'

describe('two concurrent requests', () => testPairs(1))
