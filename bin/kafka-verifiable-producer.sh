#!/bin/sh
# Kafka's name for `barnabas verifiable-producer`: finds barnabas beside this script, in the project's environment, or on the path.
here=$(dirname "$0")
for program in "$here/barnabas" "$here/../.venv/bin/barnabas"; do
    [ -x "$program" ] && exec "$program" verifiable-producer "$@"
done
exec barnabas verifiable-producer "$@"
