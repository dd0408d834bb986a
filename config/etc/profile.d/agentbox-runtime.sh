# Hints that boot writes for interactive shells. Nothing here when the box did not boot.
if [ -r /run/agentbox/runtime.sh ]; then
  . /run/agentbox/runtime.sh
fi
