#!/bin/sh
# Kafka's name for `barnabas verifiable-consumer`: finds barnabas beside this script, in the project's environment, or on the path.
here=$(dirname "$0")
for program in "$here/barnabas" "$here/../.venv/bin/barnabas"; do
    [ -x "$program" ] && exec "$program" verifiable-consumer "$@"
done
exec barnabas verifiable-consumer "$@"
