import { Online } from './online.ts'

/** Adds columns for the process ID of a command, and for the reason why a command could not start. */
export class ExecStart extends Online {
  override async up(): Promise<void> {
    await this.change(
      `alter table exec
         add column if not exists command_pid int,
         add column if not exists start_error text`,
    )
    await this.constrain(
      'exec',
      'exec_start_error_check',
      `check (start_error in ('not_found', 'not_executable', 'no_such_directory'))`,
    )
  }
}
