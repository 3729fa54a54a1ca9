#!/bin/sh
# Kafka's name for `barnabas share-groups`: finds barnabas beside this script, in the project's environment, or on the path.
here=$(dirname "$0")
for program in "$here/barnabas" "$here/../.venv/bin/barnabas"; do
    [ -x "$program" ] && exec "$program" share-groups "$@"
done
exec barnabas share-groups "$@"
