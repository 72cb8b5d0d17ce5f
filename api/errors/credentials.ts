import { Problem } from '../../shared/platform/problem.ts'

export const gone = () =>
  new Problem('invalid_credentials', 'The account that this credential belongs to has been deleted.')

export const sessionEnded = () =>
  new Problem('invalid_credentials', "This token's session has ended. Log in to get a new token.")

export const suspended = () =>
  new Problem('account_suspended', 'The account is suspended. Contact the service operator.')
