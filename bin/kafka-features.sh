#!/bin/sh
# Kafka's name for `barnabas features`: finds barnabas beside this script, in the project's environment, or on the path.
here=$(dirname "$0")
for program in "$here/barnabas" "$here/../.venv/bin/barnabas"; do
    [ -x "$program" ] && exec "$program" features "$@"
done
exec barnabas features "$@"
