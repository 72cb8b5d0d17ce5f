/** Errors of credentials that were good before. */
import { Problem } from '../../shared/platform/problem.ts'

/** For a request that finds no account any more: a key is remembered for a moment. */
export const gone = () => new Problem('invalid_credentials', 'The account of this credential is gone.')

export const sessionEnded = () =>
  new Problem('invalid_credentials', 'The session of this token was ended. Log in to get a new one.')

export const suspended = () =>
  new Problem('account_suspended', 'The account is suspended. Ask the operator of this service why.')
