/** A few bytes, always the same: bytes.soak.ts has many. */
import { testBytes } from './bytes.ts'

testBytes(8, 20_261_124)
