/** Sends many random bytes. Each run has a new seed. */
import { seed } from '../support/seed.ts'
import { testBytes } from './bytes.ts'

testBytes(300, seed)
