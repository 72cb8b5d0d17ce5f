/** Two requests about one file at the same moment: some order of the two explains what comes of them. */
import { describe } from 'vitest'
import { shareSandbox } from '../support/shared.ts'
import { testFilePairs } from './file-pairs.ts'

describe('every two requests at once', () => testFilePairs(shareSandbox({ driver: 'local' }), 1))
