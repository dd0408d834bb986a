# Unpacks $wheels (zip archives) into $out with $busybox.
set -eu
"$busybox" mkdir -p "$out"
for wheel in $wheels; do
  "$busybox" unzip -q -o "$wheel" -d "$out"
done
