/** Two concurrent requests for a file must have the same result as in some sequential order. */
import { describe } from 'vitest'
import { shareSandbox } from '../support/shared.ts'
import { testFilePairs } from './file-pairs.ts'

describe('two concurrent requests', () => testFilePairs(shareSandbox({ driver: 'local' }), 1))
