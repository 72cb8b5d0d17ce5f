/** The session token of the dashboard: a JWT that opens the routes of API keys and nothing else. */
import jwt from 'jsonwebtoken'
import { limits } from '../shared/contract/limits.ts'
import { Problem } from '../shared/problem.ts'

const algorithm = 'HS256'
const issuer = 'sandlot'
const audience = 'sandlot-dashboard'

export interface Tokens {
  issue(accountId: string): string
  /**
   * @returns the account's id
   * @throws {Problem} `token_expired` or `invalid_credentials`
   */
  verify(token: string): string
}

/** Whether a credential is a JWT by its shape, valid or not. */
export const looksLikeToken = (credential: string): boolean =>
  /^[\w-]{2,}\.[\w-]{2,}\.[\w-]*$/.test(credential)

/** @param secrets newest first: the first signs, all of them verify */
export function makeTokens(secrets: readonly string[]): Tokens {
  return {
    issue: (accountId) =>
      jwt.sign({}, secrets[0]!, {
        algorithm,
        issuer,
        audience,
        subject: accountId,
        expiresIn: limits.tokenSeconds,
      }),
    verify(token) {
      for (const secret of secrets) {
        const subject = subjectOf(token, secret)
        if (subject !== undefined) return subject
      }
      throw new Problem('invalid_credentials', 'The session token is not valid. Log in to get a new one.')
    },
  }
}

/** Undefined when it was not signed with this secret. */
function subjectOf(token: string, secret: string): string | undefined {
  try {
    return jwt.verify(token, secret, { algorithms: [algorithm], issuer, audience }).sub as string | undefined
  } catch (error) {
    // The signature is checked first, so an expired token was one of ours.
    if (error instanceof jwt.TokenExpiredError) {
      throw new Problem('token_expired', 'The session token has expired. Log in to get a new one.')
    }
    return undefined
  }
}
