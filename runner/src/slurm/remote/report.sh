# Reports on an attempt at launching. Needs: here, token, TRAINPLAN_ATTEMPT, mark.
is_at_work() {
  [ -n "$process" ] && kill -0 "$process" && return 0
  # Its shell may have ended while a child goes on. pgrep would compare names only.
  # shellcheck disable=SC2009
  ps -e -o args= | grep -F -- "$here/" | grep -v grep >/dev/null
}
# belonging KIND: of jobs ID|TIME|NAME|COMMENT, those that were submitted since the attempt began, or have its token.
belonging() {
  awk -F '|' -v head="$mark $1" -v from="$from" -v token="$token/" '$2 >= from || index($0, token) { print head, $0 }'
}
report_attempt() {
  process='' host='' begun=''
  if [ -e "$TRAINPLAN_ATTEMPT/withheld" ]; then
    printf '%s withheld\n' "$mark"
  elif [ -e "$TRAINPLAN_ATTEMPT/code" ]; then
    printf '%s code %s\n' "$mark" "$(cat "$TRAINPLAN_ATTEMPT/code")"
  elif read -r process host begun <"$TRAINPLAN_ATTEMPT/process" && [ "$host" != "$(hostname)" ]; then
    printf '%s elsewhere %s\n' "$mark" "$host"
  elif is_at_work; then
    printf '%s running\n' "$mark"
  elif [ -d "$TRAINPLAN_ATTEMPT" ]; then
    printf '%s killed\n' "$mark"
  else
    printf '%s removed\n' "$mark"
  fi 2>/dev/null
  for note in "$TRAINPLAN_ATTEMPT"/jobs/*; do
    if [ -e "$note/id" ]; then
      printf '%s job %s %s\n' "$mark" "${note##*/}" "$(cat "$note/id")"
    elif [ -e "$note/refused" ]; then
      printf '%s refused %s\n' "$mark" "${note##*/}"
    elif [ -d "$note" ]; then
      printf '%s intent %s\n' "$mark" "${note##*/}"
    fi
  done
  # Jobs without a note are found by their token in the queue or the accounting, or else by name and time.
  read -r process host begun 2>/dev/null <"$TRAINPLAN_ATTEMPT/process"
  begun=${begun:-$(stat -c %Y "$TRAINPLAN_ATTEMPT/process" "$TRAINPLAN_ATTEMPT" 2>/dev/null | head -n 1)}
  from=$((${begun:-10} - 10)) # slurmctld may have another clock
  SLURM_TIME_FORMAT=%s
  export SLURM_TIME_FORMAT
  queue=$(squeue -h -t all -u "$(id -un)" -o '%A|%V|%j|%k' 2>/dev/null) && {
    printf '%s asked squeue\n' "$mark"
    printf '%s\n' "$queue" | belonging queued
  }
  since=${since:-$(date -d '-7 days' +%Y-%m-%d 2>/dev/null || date +%Y-%m-%d)}
  past=$(sacct -X -n -P -u "$(id -un)" -S "$since" --format=JobIDRaw,Submit,JobName,Comment 2>/dev/null) && {
    printf '%s asked sacct\n' "$mark"
    printf '%s\n' "$past" | belonging accounted
  }
  printf '%s output\n' "$mark"
  tail -c 4000 "$TRAINPLAN_ATTEMPT/output" 2>/dev/null
  return 0
}
