#!/bin/sh
# Writes what a host has, to compare two moments: files with mode, owner and SHA-256, packages, users, groups,
# processes, mounts, network interfaces, rules of the packet filter. Needs only what a minimal Debian has.
# Usage: list_host.sh OUT [DIRECTORY...], the directories are left out, as are the logs, lists and caches of the
# package manager and what it notes of itself. A chain of the packet filter without a rule and with the policy
# ACCEPT is the same as none.
set -eu
export LC_ALL=C
out=$1
shift
skip='/proc /sys /dev /var/log/apt /var/cache/apt /var/lib/apt/lists /var/cache/debconf'
prune() { for directory in $skip "$@" "${out%/*}"; do printf -- '-path %s -prune -o ' "$directory"; done; }
own='! -path /var/log/dpkg.log ! -path /var/log/alternatives.log ! -path /var/lib/dpkg/*-old
  ! -path /var/lib/dpkg/lock ! -path /var/lib/dpkg/lock-frontend ! -path /var/lib/dpkg/status
  ! -path /var/lib/apt/extended_states ! -path /var/cache/ldconfig/aux-cache'
set -f
{
  # shellcheck disable=SC2046,SC2086 # words
  find / /run /tmp -xdev $(prune "$@") $own -printf '%y %p %m %U:%G %l\n'
  # shellcheck disable=SC2046,SC2086 # words
  find / /run /tmp -xdev $(prune "$@") $own -type f -print0 | xargs -0 sha256sum | sed 's/^/sum /'
  dpkg-query -W -f 'package ${Package} ${Version} ${db:Status-Abbrev}\n'
  getent passwd | sed 's/^/user /'
  getent group | sed 's/^/group /'
  for process in /proc/[0-9]*; do
    if [ -r "$process/cmdline" ]; then tr '\0' ' ' <"$process/cmdline" | sed 's/^/process /; s/$/\n/'; fi
  done | sed '/list_host\|^process tr \|^process sed \|^$/d'
  sed -E 's/^[0-9]+ [0-9]+ [0-9:]+ /mount /; s/ (shared|master):[0-9]+//g' /proc/self/mountinfo
  sed -n 's/^ *\([^ ]*\):.*/interface \1/p' /proc/net/dev
  for program in iptables-save ip6tables-save; do
    if command -v $program >/dev/null; then $program | sed -n "s/ \[.*//; /ACCEPT/d; s/^[-:]/$program &/p"; fi
  done
} | sort -u >"$out"
