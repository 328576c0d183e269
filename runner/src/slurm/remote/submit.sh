# Starts an attempt at launching a staged run, unless it was started, and reports on it. Needs: run, launcher
# (sh or sbatch), attempt, token, wait_s. Other exported variables are the launcher's environment.
umask 077
here=$HOME/.trainplan/runs/$run
TRAINPLAN_ATTEMPT=$here/attempt-$attempt
TRAINPLAN_TOKEN=$token
TRAINPLAN_STATE=$TRAINPLAN_ATTEMPT/state
export TRAINPLAN_ATTEMPT TRAINPLAN_TOKEN TRAINPLAN_STATE
[ -r "$here/launch.sh" ] || { echo "$here/launch.sh was removed" >&2; return 1; }
if mkdir "$TRAINPLAN_ATTEMPT" 2>/dev/null; then
  # In a session of its own it survives the end of the connection.
  detach=
  command -v setsid >/dev/null 2>&1 && detach=setsid
  PATH=$here/bin:$PATH $detach sh -c '
    echo "$$ $(hostname)" >"$TRAINPLAN_ATTEMPT/process"
    cd "$(dirname "$1")" && "$2" "$1"
    echo "$?" >"$TRAINPLAN_ATTEMPT/code.new"
    mv "$TRAINPLAN_ATTEMPT/code.new" "$TRAINPLAN_ATTEMPT/code"
  ' trainplan-launch "$here/launch.sh" "$launcher" </dev/null >"$TRAINPLAN_ATTEMPT/output" 2>&1 &
elif [ ! -d "$TRAINPLAN_ATTEMPT" ]; then
  echo "Can't create $TRAINPLAN_ATTEMPT" >&2
  return 1
fi
end=$(($(date +%s) + wait_s))
while [ ! -e "$TRAINPLAN_ATTEMPT/code" ] && [ "$(date +%s)" -lt "$end" ]; do
  # A launcher that ended without a code was killed, most often with its login node.
  if read -r process host <"$TRAINPLAN_ATTEMPT/process" && [ "$host" = "$(hostname)" ]; then
    kill -0 "$process" || { sleep 1; break; }
  fi 2>/dev/null
  sleep 0.2
done
report_attempt
