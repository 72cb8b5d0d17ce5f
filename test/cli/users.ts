/** Users of the client with separate homes. */
import { afterAll, beforeAll, expect } from 'vitest'
import type { World } from '../support/index.ts'
import { standIn } from '../support/shared.ts'
import { Home } from './client.ts'

export const password = 'correct horse battery'

export type Users = ReturnType<typeof makeUsers>
export type SessionUser = Awaited<ReturnType<Users['newSession']>>

/** @param world the service. It may start later. */
export function makeUsers(world: Pick<World, 'url'>) {
  let count = 0
  const newEmail = () => `user${++count}@example.com`

  const signUp = (home: Home, email: string, ...more: string[]) =>
    home.run(['signup', '--url', world.url(), '--email', email, '--password-stdin', ...more], {
      input: `${password}\n`,
    })

  async function newUser() {
    const home = new Home()
    const email = newEmail()
    expect(await signUp(home, email)).toMatchObject({ code: 0 })
    return { home, email, run: home.run.bind(home), [Symbol.dispose]: () => home[Symbol.dispose]() }
  }

  async function newSession() {
    const user = await newUser()
    const { stdout, code } = await user.run(['session', 'create'])
    expect(code).toBe(0)
    const id = stdout.trim()
    return {
      ...user,
      id,
      async [Symbol.asyncDispose]() {
        await user.run(['session', 'rm', '--yes', id])
        user[Symbol.dispose]()
      },
    }
  }

  return { newEmail, signUp, newUser, newSession }
}

/** Shares one user and one session among the tests of a group. */
export function shareSession(users: Users): SessionUser {
  let user: SessionUser | undefined
  beforeAll(async () => {
    user = await users.newSession()
  })
  afterAll(() => user?.[Symbol.asyncDispose]())
  return standIn(() => user!)
}
