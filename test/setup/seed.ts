/** Before each file: with a seed fast-check draws the same again. Without, it draws its own, and a failure tells it. */
import { isSeeded, seed } from '../support/seed.ts'

if (isSeeded) {
  const { default: fc } = await import('fast-check')
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed })
}
