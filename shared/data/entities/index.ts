/** Entities for all tables. Migrations create the tables, indexes and check constraints. */
import type { InferKyselyDB } from '@mikro-orm/postgresql'
import { Account } from './account.ts'
import { ApiKey } from './api-key.ts'
import { CommandRefusal } from './command-refusal.ts'
import { Exec } from './exec.ts'
import { IdempotencyKey } from './idempotency-key.ts'
import { Installation } from './installation.ts'
import { Sandbox } from './sandbox.ts'
import { SandboxLabel } from './sandbox-label.ts'
import { Secret } from './secret.ts'
import { UsageDay } from './usage-day.ts'
import { WarmPod } from './warm-pod.ts'

export const entities = [
  Account,
  ApiKey,
  CommandRefusal,
  Exec,
  IdempotencyKey,
  Installation,
  Sandbox,
  SandboxLabel,
  Secret,
  UsageDay,
  WarmPod,
] as const

export type Tables = InferKyselyDB<(typeof entities)[number]>
