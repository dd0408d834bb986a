# One file: copies $file to $out with $busybox.
set -eu
"$busybox" cp "$file" "$out"
