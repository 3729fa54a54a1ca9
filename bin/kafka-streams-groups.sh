#!/bin/sh
# Kafka's name for `barnabas streams-groups`: finds barnabas beside this script, in the project's environment, or on the path.
here=$(dirname "$0")
for program in "$here/barnabas" "$here/../.venv/bin/barnabas"; do
    [ -x "$program" ] && exec "$program" streams-groups "$@"
done
exec barnabas streams-groups "$@"
