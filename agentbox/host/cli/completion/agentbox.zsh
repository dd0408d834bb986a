#compdef agentbox agentbox.sh
# Completion of agentbox for zsh 5; printed by `agentbox completion zsh`. As a file `_agentbox` in a
# folder of $fpath, or read by `source` after `compinit`.

# Sets verbs, flags, values and kinds of a command, whose words are $1; false if there is none.
_agentbox_node() {
  case "$1" in
@TABLE@
    *) return 1 ;;
  esac
}

# Reads the words before the cursor. Sets `given`, the number of arguments, `pending` if the next
# word is the value of a flag, `manifest` with that flag.
_agentbox_walk() {
  local node='' word
  given=0 pending='' manifest=''
  _agentbox_node ''
  for word in "$@"; do
    if [ -n "$pending" ]; then
      [ "$pending" = --manifest ] && manifest="$word"
      pending=''
      continue
    fi
    case "$word" in
      --) pending=end; verbs='' flags='' kinds=''; return ;;
      --manifest=*) manifest="${word#--manifest=}" ;;
      -*) case " $values " in *" $word "*) pending="$word" ;; esac ;;
      *)
        if [ -n "$verbs" ] && _agentbox_node "${node:+$node }$word"; then
          node="${node:+$node }$word"
        else
          given=$((given + 1))
        fi
        ;;
    esac
  done
}

_agentbox() {
  emulate -L zsh
  local current="${words[CURRENT]}" candidates=''
  local verbs flags values kinds given pending manifest
  local -a kind found
  _agentbox_walk "${(@)words[2,CURRENT-1]}"
  if [[ -n "$pending" ]]; then
    _files
    return
  fi
  case "$current" in
    -*) candidates="$flags" ;;
    *) candidates="$verbs" ;;
  esac
  found=(${=candidates})
  kind=(${=kinds})
  if [[ -z "$candidates" ]]; then
    if [[ -z "${kind[given+1]}" ]]; then
      _files
      return
    fi
    found=(${(f)"$("${words[1]}" ${manifest:+--manifest} ${manifest:+$manifest} completion ids \
      "${kind[given+1]}" -- "$current" 2>/dev/null </dev/null)"})
  fi
  compadd -- $found
}

if [[ "${funcstack[1]}" == _agentbox ]]; then
  _agentbox "$@"
else
  compdef _agentbox agentbox agentbox.sh
fi
