import { describeOnEveryImage } from '../support/drivers.ts'
import { testExhausted } from './sandbox-exhausted.ts'

describeOnEveryImage('a sandbox', testExhausted)
