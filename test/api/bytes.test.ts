/** Sends a few random bytes with a fixed seed. bytes.soak.ts sends more. */
import { testBytes } from './bytes.ts'

testBytes(8, 20_261_124)
