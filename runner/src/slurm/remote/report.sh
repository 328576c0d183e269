# Reports on an attempt at launching. Needs: here, token, TRAINPLAN_ATTEMPT, mark.
is_at_work() {
  [ -n "$process" ] && kill -0 "$process" && return 0
  # Its shell may have ended while a child goes on. pgrep would compare names only.
  # shellcheck disable=SC2009
  ps -e -o args= | grep -F -- "$here/" | grep -v grep >/dev/null
}
report_attempt() {
  process='' host=''
  if [ -e "$TRAINPLAN_ATTEMPT/code" ]; then
    printf '%s code %s\n' "$mark" "$(cat "$TRAINPLAN_ATTEMPT/code")"
  elif read -r process host <"$TRAINPLAN_ATTEMPT/process" && [ "$host" != "$(hostname)" ]; then
    printf '%s elsewhere %s\n' "$mark" "$host"
  elif is_at_work; then
    printf '%s running\n' "$mark"
  else
    printf '%s killed\n' "$mark"
  fi 2>/dev/null
  for note in "$TRAINPLAN_ATTEMPT"/jobs/*; do
    if [ -e "$note/id" ]; then
      printf '%s job %s %s\n' "$mark" "${note##*/}" "$(cat "$note/id")"
    elif [ -d "$note" ]; then
      printf '%s intent %s\n' "$mark" "${note##*/}"
    fi
  done
  # Jobs without a note, perhaps because the disk was full, are found by their token in the queue or the
  # accounting.
  queue=$(squeue -h -t all -u "$(id -un)" -o '%A|%k' 2>/dev/null) && {
    printf '%s asked squeue\n' "$mark"
    printf '%s\n' "$queue" | grep -F -- "$token/" | sed "s/^/$mark known /"
  }
  since=${since:-$(date -d '-7 days' +%Y-%m-%d 2>/dev/null || date +%Y-%m-%d)}
  past=$(sacct -X -n -P -u "$(id -un)" -S "$since" --format=JobIDRaw,Comment 2>/dev/null) && {
    printf '%s asked sacct\n' "$mark"
    printf '%s\n' "$past" | grep -F -- "$token/" | sed "s/^/$mark known /"
  }
  printf '%s output\n' "$mark"
  tail -c 4000 "$TRAINPLAN_ATTEMPT/output" 2>/dev/null
  return 0
}
