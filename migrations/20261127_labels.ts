import { Online } from './online.ts'

/** Indexes sandboxes by metadata, name and image, so that lists can be filtered. */
export class Labels extends Online {
  override async up(): Promise<void> {
    // One row for each entry of a sandbox's metadata. Only the trigger below writes to the table.
    await this.change(
      `create table if not exists sandbox_label (
         account_id text not null,
         key text not null,
         value text not null,
         sandbox_id text not null references sandbox on delete cascade,
         primary key (account_id, key, value, sandbox_id)
       )`,
      // Used to replace the entries of a sandbox, and to delete them with it.
      'create index if not exists sandbox_label_of_sandbox on sandbox_label (sandbox_id)',
      `create or replace function label_sandbox() returns trigger language plpgsql
       as $$ begin
         if tg_op = 'UPDATE' then
           delete from sandbox_label where sandbox_id = new.id;
         end if;
         if new.metadata <> '{}' then
           insert into sandbox_label (account_id, key, value, sandbox_id)
           select new.account_id, key, value, new.id from jsonb_each_text(new.metadata);
         end if;
         return null;
       end $$`,
      `create or replace trigger sandbox_labels after insert or update of metadata on sandbox for each row
         execute function label_sandbox()`,
    )
    // Makes the trigger add the entries of existing sandboxes.
    await this.fill('sandbox', 'metadata = metadata', `metadata <> '{}'`)
    // The arrays ensure that PostgreSQL cannot read all sandboxes of an account instead. Its estimates favor
    // that plan for accounts that are larger than average.
    await this.index(
      'sandbox_by_name',
      'on sandbox ((array[account_id, name]), id desc) where name is not null',
    )
    await this.index('sandbox_by_image', 'on sandbox ((array[account_id, image]), id desc)')
  }
}
