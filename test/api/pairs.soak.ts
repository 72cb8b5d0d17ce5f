/** The pairs of the gate, many times. */
import { describe } from 'vitest'
import { testPairs } from './pairs.ts'

describe('every two requests at once, forty times', () => testPairs(40))
