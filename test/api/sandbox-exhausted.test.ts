import { describe } from 'vitest'
import { testExhausted } from './sandbox-exhausted.ts'

describe('local sandboxes', () => testExhausted({ driver: 'local', env: {} }))
