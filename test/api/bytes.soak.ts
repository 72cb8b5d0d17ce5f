/** Other bytes each time, and many. */
import { seed } from '../support/seed.ts'
import { testBytes } from './bytes.ts'

testBytes(300, seed)
