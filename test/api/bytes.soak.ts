/** Other bytes each time, and many. The seed that is printed makes them again, as SANDLOT_SEED. */
import { testBytes } from './bytes.ts'

testBytes(300, Number(process.env.SANDLOT_SEED ?? Date.now() % 2 ** 31))
