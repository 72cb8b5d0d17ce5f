import type { ErrorCode } from '../../shared/contract/errors.ts'

const steps: { [C in ErrorCode]?: string } = {
  invalid_request: 'Correct the arguments listed in errors, then call this tool again.',
  account_suspended: 'All calls fail until the operator lifts the suspension. Inform the user.',
  command_not_allowed:
    'Use a command that the allowlist permits. If the error names an environment variable, do not set it. Only the user can change the allowlist.',
  not_found: 'Check session_id. session_list shows the active sessions.',
  file_not_found: 'Check the path with file_list or file_glob. To create a new file, use file_create.',
  file_exists:
    'To replace the file, call this tool again with overwrite set to true. To change the file, use file_edit.',
  is_directory: 'Use the path of a file in the directory. file_list shows the files in the directory.',
  permission_denied: 'Choose a path under /workspace or /tmp.',
  read_only: 'Choose a path under /workspace or /tmp, the only writable directories.',
  edit_no_match: 'Read the file with file_view, then copy the text to replace exactly, including whitespace.',
  edit_not_unique: 'Add surrounding lines to old so that it occurs only once, or set replace_all to true.',
  precondition_failed: 'Read the file again with file_view, then edit its current content.',
  exec_not_found: 'Check whether the command took effect. If it did not, call this tool again.',
  sandbox_starting: 'Wait retry_after seconds, then make the same call again.',
  sandbox_exhausted:
    'If exhausted is "disk", delete files with exec, or call session_destroy. Otherwise, call session_reset, which ends all processes and keeps the files. Then call this tool again.',
  sandbox_destroyed: "Call session_create and use the new id. The old session's files are deleted.",
  body_too_large: 'Split the content into several calls, or create it inside the session with exec.',
  request_timeout: 'Make the same call again.',
  rate_limited: 'Wait retry_after seconds, then make the same call again.',
  concurrent_sandbox_limit_reached:
    'Use an active session, or call session_destroy for a session that is no longer needed.',
  monthly_usage_limit_reached: 'No session can be created until the next month begins. Inform the user.',
  sandbox_start_failed:
    "Call session_create once more. If it fails again, report the error's detail to the user.",
  unavailable: 'Wait retry_after seconds, then make the same call again.',
  disk_full: 'Delete some files with exec, then call this tool again.',
  internal_error: 'Try once more. If it fails again, report the request_id to the user.',
}

/** Advice after `unavailable` from a tool that makes changes, because the call may have taken effect. */
const unlessDone =
  'Wait retry_after seconds, then check whether the call took effect. If it did not, call this tool again.'

export const nextStep = (code: ErrorCode, { readOnly }: { readOnly: boolean }): string =>
  code === 'unavailable' && !readOnly ? unlessDone : (steps[code] ?? 'Report the `detail` field to the user.')
