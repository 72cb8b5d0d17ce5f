import jwt from 'jsonwebtoken'
import * as z from 'zod'
import { limits } from '../../shared/contract/limits.ts'
import { Problem } from '../../shared/platform/problem.ts'

const algorithm = 'HS256'
const issuer = 'sandlot'
const audience = 'sandlot-dashboard'

/**
 * Claims of a session token. It is valid only while `generation` equals the account's session generation, a
 * counter that is incremented to end all sessions.
 */
interface SessionClaims {
  accountId: string
  generation: number
}

export const looksLikeToken = (credential: string): boolean =>
  /^[\w-]{2,}\.[\w-]{2,}\.[\w-]*$/.test(credential)

export class Tokens {
  private readonly secrets: readonly string[]

  /** @param secrets the first secret signs new tokens; each of them can verify a token */
  constructor(secrets: readonly string[]) {
    this.secrets = secrets
  }

  issue({ accountId: subject, generation }: SessionClaims): string {
    const options = { algorithm, issuer, audience, subject, expiresIn: limits.tokenSeconds } as const
    return jwt.sign({ generation }, this.secrets[0]!, options)
  }

  /** @throws {Problem} `token_expired` or `invalid_credentials` */
  verify(token: string): SessionClaims {
    for (const secret of this.secrets) {
      const session = sessionOf(token, secret)
      if (session !== undefined) return session
    }
    throw new Problem('invalid_credentials', 'The session token is not valid. Log in to get a new one.')
  }
}

/** Schema of a token's claims. A valid signature does not guarantee their types. */
const Payload = z
  .object({
    sub: z.string().regex(/^acc_[0-9a-z]{26}$/),
    exp: z.int(),
    generation: z.int().min(0),
  })
  .transform(({ sub, generation }): SessionClaims => ({ accountId: sub, generation }))

function sessionOf(token: string, secret: string): SessionClaims | undefined {
  try {
    return Payload.safeParse(jwt.verify(token, secret, { algorithms: [algorithm], issuer, audience })).data
  } catch (error) {
    // The signature is checked first, so an expired token is one of ours.
    if (error instanceof jwt.TokenExpiredError) {
      throw new Problem('token_expired', 'The session token has expired. Log in to get a new one.')
    }
    return undefined
  }
}
