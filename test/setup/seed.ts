/** Before each file: seeds fast-check. Without a seed it draws one, and prints it with a failure. */
import { isSeeded, seed } from '../support/seed.ts'

if (isSeeded) {
  const { default: fc } = await import('fast-check')
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed })
}
