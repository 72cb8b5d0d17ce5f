import { describe } from 'vitest'
import { testExhausted } from './sandbox-exhausted.ts'

describe('a local sandbox', () => testExhausted({ driver: 'local', env: {} }))
