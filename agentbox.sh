#!/bin/sh
# Finds or creates the Python environment of this checkout, then runs the agentbox command.
# --yes (anywhere before `--`) consents to installing Python; the command asks for everything else.
set -eu
script=$0; [ ! -L "$script" ] || script=$(readlink -f -- "$script"); case $script in */*) ;; *) script=./$script ;; esac
here=$(CDPATH='' cd -- "${script%/*}/" && pwd -P)
venv=$here/.venv
umask 022

say() { printf '%s\n' "$*" >&2; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
note() { LC_ALL=C apt-get -s --no-install-recommends install "$@" | sed -n 's/^Inst \([^ ]*\) (.*/\1/p' >>"$here/.venv.packages"; }
apt() { as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -qq -y -o DPkg::Lock::Timeout=120 ${AGENTBOX_CA_BUNDLE:+-o "Acquire::https::CAInfo=$AGENTBOX_CA_BUNDLE"} "$@"; }
usable() { "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

consented() {
  for word in "$@"; do
    case $word in --) break ;; --yes | -y) return 0 ;; esac
  done
  [ -t 0 ] || return 1
  printf 'Install python3 and python3-venv with apt? [y/N] ' >&2
  read -r answer && case $answer in [yY]*) return 0 ;; esac
  return 1
}

find_python() {
  for python in /usr/bin/python3 python3 python3.14 python3.13 python3.12 python3.11; do
    if command -v "$python" >/dev/null && usable "$python"; then return 0; fi
  done
  return 1
}

install_python() {
  if ! command -v apt-get >/dev/null || ! consented "$@"; then
    say 'agentbox: cannot run: it needs Python 3.11 or later with its venv module'
    say '  Run: apt-get install python3 python3-venv   (or give --yes)'
    exit 3
  fi
  exec 9<"$script"; flock 9 # serialises concurrent runs
  if find_python; then return; fi
  say 'installing python3 and python3-venv ...'
  log=$(mktemp -t "agentbox-apt-$$-XXXXXX")
  # Completes an interrupted installation first; if that fails, apt reports the reason.
  if ! { as_root dpkg --configure --pending; apt update && note python3 python3-venv && apt --no-install-recommends install python3 python3-venv; } >"$log" 2>&1; then
    say "agentbox: cannot install Python: $({ grep '^E: ' "$log" || cat "$log"; } | tail -n 1)"
    say "  See $log for the full output. Fix the cause (network, disk space), then run the command again."
    exit 3
  fi
  rm -f "$log"; find_python || { say 'agentbox: cannot run: Debian installed no Python 3.11 or later'; exit 3; }
}

trap 'say "agentbox: interrupted"; exit 130' INT HUP TERM
place=''; [ ! -r "$venv/.checkout" ] || IFS= read -r place <"$venv/.checkout" || place=''
if [ -L "$venv" ] || [ "$place" != "$here" ] || [ ! -x "$venv/bin/python" ] ||
  ! cmp -s "$here/requirements.host" "$venv/.required"; then
  find_python || install_python "$@"; exec 9<&-
  "$python" "$here/agentbox/host/bootstrap.py" "$here" "${TERM:-dumb}"
fi
exec "$venv/bin/python" -P -m agentbox "$@" # -P: not from the working directory
