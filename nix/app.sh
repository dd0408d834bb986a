# Writes $out/bin/$name: a script of $shell that becomes $line with the caller's arguments.
set -eu
"$busybox" mkdir -p "$out/bin"
printf '#!%s\nexec %s "$@"\n' "$shell" "$line" >"$out/bin/$name"
"$busybox" chmod 755 "$out/bin/$name"
