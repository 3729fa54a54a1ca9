#!/bin/sh
# Kafka's name for `barnabas console-producer`: finds barnabas beside this script, in the project's environment, or on the path.
here=$(dirname "$0")
for program in "$here/barnabas" "$here/../.venv/bin/barnabas"; do
    [ -x "$program" ] && exec "$program" console-producer "$@"
done
exec barnabas console-producer "$@"
