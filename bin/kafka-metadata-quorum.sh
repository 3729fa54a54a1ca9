#!/bin/sh
# Kafka's name for `barnabas metadata-quorum`: finds barnabas beside this script, in the project's environment, or on the path.
here=$(dirname "$0")
for program in "$here/barnabas" "$here/../.venv/bin/barnabas"; do
    [ -x "$program" ] && exec "$program" metadata-quorum "$@"
done
exec barnabas metadata-quorum "$@"
