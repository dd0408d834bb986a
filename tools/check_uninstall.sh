#!/bin/sh
# RC-040: a machine has after `uninstall --purge --packages` what it had before `up`; only logs, lists and caches of the
# package manager may differ (tools/list_host.sh says which). It installs, starts and removes: run it as root on a
# Debian machine that may be thrown away, with packages up to date, in a clone of this repository that nothing was
# started from, in a network namespace of its own if another dockerd runs on that kernel.
# Usage: tools/check_uninstall.sh docker|process [SECONDS]
# SECONDS: `up` is killed (SIGKILL) after that time. Exit code 1 prints the differences.
set -eu
engine=$1
cd "$(dirname "$0")/.."
lists=$(mktemp -d /var/tmp/lists-XXXXXX)
sh tools/list_host.sh "$lists/before"
if [ $# -gt 1 ]; then
  timeout --signal=KILL "$2" ./agentbox.sh up --engine "$engine" --yes || echo "up ended with code $?"
else
  ./agentbox.sh --timeout 600 up --engine "$engine" --yes
  ./agentbox.sh run -- true
fi
./agentbox.sh uninstall --purge --packages --yes
sh tools/list_host.sh "$lists/after"
if diff "$lists/before" "$lists/after"; then
  rm -rf "$lists"
  echo 'no difference'
else
  exit 1
fi
