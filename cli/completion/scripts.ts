export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/**
 * Completion directives. As in Cobra, the last line printed by `sandlot __complete` is `:` and the sum of the
 * directives.
 */
export const directives = { noSpace: 2, noFiles: 4 } as const

const bash = String.raw`# bash completion for sandlot: source <(sandlot completion bash)
_sandlot() {
  local program=$1 line directive=0
  type -P -- "$program" >/dev/null || program=sandlot
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("$line")
  done < <("$program" __complete --breaks "$COMP_WORDBREAKS" --type "$COMP_TYPE" \
    --line "${'$'}{COMP_LINE:0:COMP_POINT}" 2>/dev/null)
  local last=$((${'$'}{#COMPREPLY[@]} - 1))
  [ "$last" -lt 0 ] && return
  directive=${'$'}{COMPREPLY[last]#:}
  unset "COMPREPLY[last]"
  if ((directive & ${directives.noSpace})); then compopt -o nospace; fi
  if ((directive & ${directives.noFiles})); then compopt +o default; fi
}
complete -o default -o nosort -F _sandlot sandlot 2>/dev/null || complete -o default -F _sandlot sandlot
`

const zsh = String.raw`#compdef sandlot
# zsh completion for sandlot: source <(sandlot completion zsh), or as _sandlot in a folder of $fpath
_sandlot() {
  local -a lines plain open
  local line value directive
  lines=("${'$'}{(@f)$("${'$'}{(Q)words[1]}" __complete -- "${'$'}{(@Q)words[2,CURRENT-1]}" "${'$'}{(Q)PREFIX}" 2>/dev/null)}")
  directive=${'$'}{lines[-1]#:}
  [[ -n $directive ]] || return 1
  lines[-1]=()
  for line in "${'$'}{lines[@]}"; do
    value=${'$'}{line%%$'\t'*}
    line="${'$'}{value//:/\\:}:${'$'}{line#"$value"}"
    # No space after a folder, because its path may continue.
    if [[ $value == */ ]]; then open+=("${'$'}{line//$'\t'/}"); else plain+=("${'$'}{line//$'\t'/}"); fi
  done
  ((${'$'}#plain)) && _describe -V sandlot plain
  ((${'$'}#open)) && _describe -V sandlot open -S ''
  ((directive & ${directives.noFiles})) || _files
}
if [ "${'$'}funcstack[1]" = _sandlot ]; then _sandlot "$@"; else compdef _sandlot sandlot; fi
`

const fish = String.raw`# fish completion for sandlot: sandlot completion fish | source
function __sandlot_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l current (string unescape -- "$typed"); or set current "$typed"
    set -l lines ($words[1] __complete -- $words[2..-1] "$current" 2>/dev/null)
    test (count $lines) -gt 0; or return
    set -l directive (string sub -s 2 -- $lines[-1])
    set -e lines[-1]
    test (count $lines) -gt 0; and printf '%s\n' $lines
    test (math "bitand($directive, ${directives.noFiles})") -eq 0; and __fish_complete_path "$current"
end
complete -c sandlot -f -a '(__sandlot_complete)'
`

export const scripts: Record<Shell, string> = { bash, zsh, fish }
