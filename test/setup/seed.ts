/** Seeds fast-check before each file. An unseeded fast-check picks a seed and prints it on failure. */
import { isSeeded, seed } from '../support/seed.ts'

if (isSeeded) {
  const { default: fc } = await import('fast-check')
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed })
}
