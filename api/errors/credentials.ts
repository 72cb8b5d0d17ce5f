/** Errors of credentials that were valid before. */
import { Problem } from '../../shared/platform/problem.ts'

/** For an account that was deleted while its key was cached. */
export const gone = () =>
  new Problem('invalid_credentials', 'The account of this credential has been deleted.')

export const sessionEnded = () =>
  new Problem('invalid_credentials', 'The session of this token has ended. Log in to get a new token.')

export const suspended = () =>
  new Problem('account_suspended', 'The account is suspended. Contact the operator of this service.')
