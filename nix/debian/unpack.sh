# Unpacks $debs into $out with $busybox. Permissions are the store's business.
set -eu
"$busybox" mkdir -p "$out"
for deb in $debs; do
  "$busybox" dpkg-deb -x "$deb" "$out"
done
