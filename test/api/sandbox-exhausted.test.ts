import { describe } from 'vitest'
import { testExhausted } from './exhausted.ts'

describe('a local sandbox', () => testExhausted({ driver: 'local', env: {} }))
