# Reports on an attempt at launching a staged run. Starts it before, if that is wanted and it was not started; if it is not
# wanted, makes sure that nobody starts it later. Needs: run, launcher (sh or sbatch), attempt, token, start (yes or
# nothing), exclude (nodes, or nothing), wait_s. Other exported variables are the launcher's environment.
umask 077
here=$HOME/.trainplan/runs/$run
TRAINPLAN_ATTEMPT=$here/attempt-$attempt
TRAINPLAN_TOKEN=$token
TRAINPLAN_STATE=$TRAINPLAN_ATTEMPT/state
TRAINPLAN_EXCLUDE=$exclude
export TRAINPLAN_ATTEMPT TRAINPLAN_TOKEN TRAINPLAN_STATE TRAINPLAN_EXCLUDE
if [ ! -d "$TRAINPLAN_ATTEMPT" ] && [ ! -r "$here/launch.sh" ]; then
  # Somebody removed the run's folder. An attempt that was to be started now was not started before.
  if [ -n "$start" ]; then printf '%s withheld\n' "$mark"; else report_attempt; fi
  return 0
elif mkdir "$TRAINPLAN_ATTEMPT" 2>/dev/null; then
  if [ -z "$start" ]; then
    : >"$TRAINPLAN_ATTEMPT/withheld" || return 1
  else
    # In a session of its own it survives the end of the connection.
    detach=
    command -v setsid >/dev/null 2>&1 && detach=setsid
    PATH=$here/bin:$PATH $detach sh -c '
      echo "$$ $(hostname) $(date +%s)" >"$TRAINPLAN_ATTEMPT/process"
      cd "$(dirname "$1")" && "$2" "$1"
      echo "$?" >"$TRAINPLAN_ATTEMPT/code.new"
      mv "$TRAINPLAN_ATTEMPT/code.new" "$TRAINPLAN_ATTEMPT/code"
    ' trainplan-launch "$here/launch.sh" "$launcher" </dev/null >"$TRAINPLAN_ATTEMPT/output" 2>&1 &
  fi
elif [ ! -d "$TRAINPLAN_ATTEMPT" ]; then
  echo "Can't create $TRAINPLAN_ATTEMPT" >&2
  return 1
fi
end=$(($(date +%s) + wait_s))
while [ ! -e "$TRAINPLAN_ATTEMPT/code" ] && [ ! -e "$TRAINPLAN_ATTEMPT/withheld" ] && [ "$(date +%s)" -lt "$end" ]; do
  # A launcher that ended without a code was killed, most often with its login node.
  if read -r process host begun <"$TRAINPLAN_ATTEMPT/process" && [ "$host" = "$(hostname)" ]; then
    kill -0 "$process" || { sleep 1; break; }
  fi 2>/dev/null
  sleep 0.2
done
report_attempt
