/** Seeds fast-check before each file. Without a seed, fast-check picks one and prints it with a failure. */
import { isSeeded, seed } from '../support/seed.ts'

if (isSeeded) {
  const { default: fc } = await import('fast-check')
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed })
}
