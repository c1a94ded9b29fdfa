#!/bin/bash
# Of the same shape as the one in NVIDIA's images: a banner on stdout, scripts that may set variables, then the command.
echo
echo "=== A banner ==="
for script in /opt/nvidia/entrypoint.d/*.sh; do
  source "$script"
done
if [ $# -eq 0 ]; then
  exec /bin/bash
fi
exec "$@"
