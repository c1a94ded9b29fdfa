#!/bin/sh
# Trains, and then writes a file.
"$PYTHON" "$(dirname "$0")/plain.py"
echo behind > behind
