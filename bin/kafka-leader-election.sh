#!/bin/sh
# Kafka's name for `barnabas leader-election`: finds barnabas beside this script, in the project's environment, or on the path.
here=$(dirname "$0")
for program in "$here/barnabas" "$here/../.venv/bin/barnabas"; do
    [ -x "$program" ] && exec "$program" leader-election "$@"
done
exec barnabas leader-election "$@"
