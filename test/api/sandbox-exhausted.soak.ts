import { describeOnEveryImage } from '../support/drivers.ts'
import { testExhausted } from './exhausted.ts'

describeOnEveryImage('a sandbox', testExhausted)
