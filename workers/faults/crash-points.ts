/**
 * The points at which the death of a worker leaves an operation incomplete. Tests kill a worker at each
 * point, and verify that other workers complete the operation.
 */

export const podCrashPoints = [
  'create: before the pod is created',
  'create: the pod exists, its uid is not recorded',
  'create: the uid is recorded, the pod is not ready',
  'create: the pod is ready, the row is not marked ready',
  'create: the row is ready, no client has been notified',
  'delete: before the pod is deleted',
  'delete: the pod is deleted, the row is not marked reaped',
  'expire: before the row is ended',
  'expire: the row is ended, the pod lives',
  'reconcile or watch: the row is ended, the pod lives',
  'pool: the row exists, its pod does not',
  'pool: the pod exists, it is not ready',
  'pool: the pod is ready, its row is not marked ready',
  'pool: the row is deleted, its pod is not',
  'claim: the row has the pod, the pod is not assigned',
  'claim: the pod is assigned, its row is not marked assigned',
  'replace: the row needs another pod, none has been created',
] as const

export const commandCrashPoints = [
  'start: the row exists, the command does not run',
  'start: the terminal waits, its pid is not recorded',
  'start: the command runs, no client has been notified',
  'end: the command has ended, its exit status is not recorded',
  'end: the row has the exit status, no client has been notified',
] as const

export type PodCrashPoint = (typeof podCrashPoints)[number]
export type CommandCrashPoint = (typeof commandCrashPoints)[number]
export type CrashPoint = PodCrashPoint | CommandCrashPoint
