/** Advice for agents: one sentence for each error code. */
import type { ErrorCode } from '../../shared/contract/errors.ts'

const steps: { [C in ErrorCode]?: string } = {
  invalid_request: 'Correct the arguments that errors names, and call again.',
  account_suspended: 'Nothing works until the operator lifts it: tell the user.',
  scope_not_allowed: 'The user can give you another key, or do this himself: tell him what detail says.',
  command_not_allowed:
    'Use a command that the account allows, without the variable that is named; only the user can change the list.',
  not_found: 'Check session_id: session_list shows the sessions there are.',
  file_not_found: 'Check the path with file_list or file_glob; file_create makes a new file.',
  file_exists: 'Call again with overwrite true if it is to be replaced, or change it with file_edit.',
  is_directory: 'Name a file in it; file_list shows its entries.',
  permission_denied: 'Choose a path below /workspace or /tmp.',
  read_only: 'Only /workspace and /tmp can be written: choose a path there.',
  edit_no_match: 'Read the file with file_view and copy the text to replace exactly, white space included.',
  edit_not_unique: 'Add lines around the text to old so that it is there once, or set replace_all.',
  precondition_failed: 'Read the file again with file_view, then edit what is there now.',
  exec_not_found: 'Look whether the command did its work; if it did not, call again.',
  sandbox_starting: 'Wait retry_after seconds, then make the same call again.',
  sandbox_exhausted:
    'If exhausted is disk, delete files with exec or call session_destroy. Otherwise call session_reset, which ends all processes and keeps the files; then call again.',
  sandbox_destroyed: 'Call session_create and use the new id; the files of the old session are gone.',
  body_too_large: 'Send less at once: split the content, or make it inside the session with exec.',
  request_timeout: 'Make the same call again.',
  rate_limited: 'Wait retry_after seconds, then make the same call again.',
  concurrent_sandbox_limit_reached:
    'Use a session that is active, or destroy one that is no longer needed with session_destroy.',
  monthly_usage_limit_reached: 'No session can be created until the month ends: tell the user.',
  sandbox_start_failed: 'Call session_create once more; if it fails again, tell the user what detail says.',
  unavailable: 'Wait retry_after seconds, then make the same call again.',
  disk_full: 'Delete files with exec, then call again.',
  internal_error: 'Try once more; if it fails again, tell the user the request_id.',
}

const otherwise = 'Tell the user what detail says.'

/** For a tool that changes something: the call may have done its work before the service became unavailable. */
const unlessDone = 'Wait retry_after seconds, then check whether it was done; if it was not, call again.'

export const nextStep = (code: ErrorCode, { readOnly }: { readOnly: boolean }): string =>
  code === 'unavailable' && !readOnly ? unlessDone : (steps[code] ?? otherwise)
