import { Online } from './online.ts'

/** Usage by day of sandboxes whose rows are deleted, and how long a replaced API key was to live. */
export class Usage extends Online {
  override async up(): Promise<void> {
    await this.change(
      `create table if not exists usage_day (
         account_id text not null references account on delete cascade,
         -- In UTC.
         day date not null,
         milliseconds bigint not null,
         primary key (account_id, day)
       )`,
      // A replaced key expires soon; `lifetime` is what it had before that, and null if it was to live for ever.
      `alter table api_key
         add column if not exists is_replaced boolean not null default false,
         add column if not exists lifetime interval`,
    )
  }
}
