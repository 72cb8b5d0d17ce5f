import { Online } from './online.ts'

/** The scope of API keys, the generation of sessions, and the addresses that an account logged in from. */
export class Credentials extends Online {
  override async up(): Promise<void> {
    await this.change(`alter table api_key add column if not exists scope text not null default 'full'`)
    await this.constrain('api_key', 'api_key_scope_check', `check (scope in ('full', 'run'))`)
    await this.change(`
      alter table account
        -- Counted up to end all session tokens: each carries the figure of its login.
        add column if not exists session_generation int not null default 0,
        -- Addresses of its sign-up and of the last logins that succeeded, newest first.
        add column if not exists login_addresses jsonb not null default '[]'`)
  }
}
