# Starts a staged run's launch once, and tells what came of it. Needs: run, launcher (sh or sbatch),
# attempt, token, wait_s. What is exported
# beside them is the launch's environment.
umask 077
here=$HOME/.trainplan/runs/$run
TRAINPLAN_ATTEMPT=$here/attempt-$attempt
TRAINPLAN_TOKEN=$token
TRAINPLAN_STATE=$TRAINPLAN_ATTEMPT/state
export TRAINPLAN_ATTEMPT TRAINPLAN_TOKEN TRAINPLAN_STATE
[ -r "$here/launch.sh" ] || { echo "$here/launch.sh is gone" >&2; return 1; }
if mkdir "$TRAINPLAN_ATTEMPT" 2>/dev/null; then
  # In a session of its own it goes on when the connection breaks.
  detach=
  command -v setsid >/dev/null 2>&1 && detach=setsid
  PATH=$here/bin:$PATH $detach sh -c '
    echo "$$ $(hostname)" >"$TRAINPLAN_ATTEMPT/process"
    cd "$(dirname "$1")" && "$2" "$1"
    echo "$?" >"$TRAINPLAN_ATTEMPT/code.new"
    mv "$TRAINPLAN_ATTEMPT/code.new" "$TRAINPLAN_ATTEMPT/code"
  ' trainplan-launch "$here/launch.sh" "$launcher" </dev/null >"$TRAINPLAN_ATTEMPT/output" 2>&1 &
elif [ ! -d "$TRAINPLAN_ATTEMPT" ]; then
  echo "cannot make $TRAINPLAN_ATTEMPT" >&2
  return 1
fi
end=$(($(date +%s) + wait_s))
while [ ! -e "$TRAINPLAN_ATTEMPT/code" ] && [ "$(date +%s)" -lt "$end" ]; do
  # A launch whose process ended without a code was killed, most often with its login node.
  if read -r process host <"$TRAINPLAN_ATTEMPT/process" && [ "$host" = "$(hostname)" ]; then
    kill -0 "$process" || { sleep 1; break; }
  fi 2>/dev/null
  sleep 0.2
done
report_attempt
