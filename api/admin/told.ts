/** What a command of the operator tells. */
export interface Told {
  /** For programs: the object of --json. */
  value: object
  /** For people. */
  text: string
}
