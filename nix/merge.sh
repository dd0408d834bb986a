# Copies the folders $trees over one another into $out with $busybox: what a box would see as its root.
set -eu
"$busybox" mkdir -p "$out"
for tree in $trees; do
  "$busybox" cp -a "$tree/." "$out/"
  "$busybox" chmod -R u+w "$out"
done
