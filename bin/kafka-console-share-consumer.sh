#!/bin/sh
# Kafka's name for `barnabas console-share-consumer`: finds barnabas beside this script, in the project's environment, or on the path.
here=$(dirname "$0")
for program in "$here/barnabas" "$here/../.venv/bin/barnabas"; do
    [ -x "$program" ] && exec "$program" console-share-consumer "$@"
done
exec barnabas console-share-consumer "$@"
