/**
 * Every place where a worker's death leaves something half done. A test kills a worker at each of them, and expects the
 * sweep to finish what was begun.
 */

/** Of creates, destroys and the warm pool. */
export const podCrashPoints = [
  'create: before the pod is made',
  'create: the pod is made, the row does not know it',
  'create: the row knows the pod, it is not ready',
  'create: the pod is ready, the row does not say so',
  'create: the row says ready, nobody was told',
  'delete: before the pod is deleted',
  'delete: the pod is deleted, the row does not say so',
  'expire: before the row is ended',
  'expire: the row is ended, the pod lives',
  'sweep or watch: the row is ended, the pod lives',
  'pool: the row is there, its pod is not',
  'pool: the pod is made, it is not ready',
  'pool: the pod is ready, its row does not say so',
  'pool: the row is gone, its pod lives',
  'claim: the row has the pod, which does not know it',
  'claim: the pod knows whose it is, its row does not say so',
  'replace: the row wants another pod, nobody makes it',
] as const

/** Of commands. */
export const commandCrashPoints = [
  'start: the row is there, the command does not run',
  'start: the terminal waits, the row does not know its pid',
  'start: the command runs, nobody was told',
  'end: the command has ended, its row does not say so',
  'end: the row says how it ended, nobody was told',
] as const

export type PodCrashPoint = (typeof podCrashPoints)[number]
export type CommandCrashPoint = (typeof commandCrashPoints)[number]
export type CrashPoint = PodCrashPoint | CommandCrashPoint
