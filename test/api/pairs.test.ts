/** Two concurrent requests for an object must have the same result as in some sequential order. */
import { describe } from 'vitest'
import { testPairs } from './pairs.ts'

describe('two concurrent requests', () => testPairs(1))
