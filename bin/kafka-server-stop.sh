#!/bin/sh
# Kafka's name for `barnabas server-stop`: finds barnabas beside this script, in the project's environment, or on the path.
here=$(dirname "$0")
for program in "$here/barnabas" "$here/../.venv/bin/barnabas"; do
    [ -x "$program" ] && exec "$program" server-stop "$@"
done
exec barnabas server-stop "$@"
