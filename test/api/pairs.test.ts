/** Two requests about one thing at the same moment: some order of the two explains what comes of them. */
import { describe } from 'vitest'
import { testPairs } from './pairs.ts'

describe('every two requests at once', () => testPairs(1))
