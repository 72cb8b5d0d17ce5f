/** Many random bytes, with a new seed for each run. */
import { seed } from '../support/seed.ts'
import { testBytes } from './bytes.ts'

testBytes(300, seed)
