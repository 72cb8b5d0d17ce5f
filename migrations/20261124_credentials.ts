import { Migration } from '@mikro-orm/migrations'

/** The scope of API keys, the generation of sessions, and the addresses that an account logged in from. */
export class Credentials extends Migration {
  override up(): void {
    this.addSql(`
      alter table api_key add column scope text not null default 'full' check (scope in ('full', 'run'))`)
    this.addSql(`
      alter table account
        -- Counted up to end all session tokens: each carries the figure of its login.
        add column session_generation int not null default 0,
        -- Addresses of its sign-up and of the last logins that succeeded, newest first.
        add column login_addresses jsonb not null default '[]'`)
  }
}
