# Completion of agentbox for bash 4.4 or later; printed by `agentbox completion bash`.

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
  local IFS=$' \t\n' current="${COMP_WORDS[COMP_CWORD]}" candidates='' word
  local verbs flags values kinds given pending manifest kind
  COMPREPLY=()
  _agentbox_walk "${COMP_WORDS[@]:1:COMP_CWORD-1}"
  [ -n "$pending" ] && return
  case "$current" in
    -*) candidates="$flags" ;;
    *) candidates="$verbs" ;;
  esac
  for word in $candidates; do
    case "$word" in "$current"*) COMPREPLY+=("$word") ;; esac
  done
  kind=($kinds)
  if [ -z "$candidates" ] && [ -n "${kind[given]}" ]; then
    # Only names without signs of a shell are printed.
    while IFS= read -r word; do
      COMPREPLY+=("$word")
    done < <("${COMP_WORDS[0]}" ${manifest:+--manifest "$manifest"} completion ids \
      "${kind[given]}" -- "$current" 2>/dev/null </dev/null)
  fi
}

complete -o default -F _agentbox agentbox agentbox.sh ./agentbox.sh
