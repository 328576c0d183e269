# Polls all jobs and logs. Needs:
#   mark
#   ask     jobs that may have left the queue, separated by commas
#   finds   lines of: key, job, form of its log's name (counted or plain), shell pattern of its path
#   states  lines of: key, run
#   tails   lines of: key, 1 to read whatever the size seems to be, inode, offset, bytes to read again before it, path
#   cap     the most bytes to read of each log

# is_log_of PATH JOB FORM: whether the job's number is the last one in the log's name or, in the form counted,
# the one before the restart count. Other numbers in the name, such as that of GPUs, may be equal.
is_log_of() {
  stem=${1##*/}
  stem=${stem%.*}
  if [ "$3" = counted ]; then
    case ${stem##*_} in '' | *[!0-9]*) return 1 ;; esac
    stem=${stem%_*}
  fi
  stem=${stem%"${stem##*[0-9]}"}
  [ "${stem##*[!0-9]}" = "$2" ]
}
find_logs() {
  printf '%s\n' "$finds" | while read -r key job form pattern; do
    [ -z "$pattern" ] || eval "for file in $pattern; do
      ! is_log_of \"\$file\" \"\$job\" \"\$form\" || [ ! -e \"\$file\" ] || printf '%s %s\\n' \"\$key\" \"\$file\"
    done"
  done
}
read_tails() {
  printf '%s\n' "$tails" | cut -d' ' -f6- | tr '\n' '\0' | xargs -0 stat -L -c '%i %s %n' -- 2>/dev/null |
    TAILS=$tails awk '
      BEGIN {
        n = split(ENVIRON["TAILS"], lines, "\n")
        for (i = 1; i <= n; i++) {
          split(lines[i], part, " ")
          path = substr(lines[i], length(part[1] part[2] part[3] part[4] part[5]) + 6)
          tail[path] = part[1] " " part[2] " " part[3] " " part[4] " " part[5]
        }
      }
      {
        path = substr($0, length($1 $2) + 3)
        if (path in tail) print tail[path], $1, $2, path
      }' |
    while read -r key force known offset overlap inode size path; do
      if [ "$inode" != "$known" ] && [ "$known" != 0 ]; then
        # Replaced by another file: read the rest of the old one first, wherever it is now.
        old=$(find "$(dirname "$path")" -maxdepth 1 -inum "$known" 2>/dev/null | head -n 1)
        old_size=$([ -z "$old" ] || stat -L -c %s -- "$old" 2>/dev/null)
        if [ "${old_size:-0}" -gt "$offset" ]; then
          inode=$known size=$old_size path=$old
        else
          offset=0 overlap=0
        fi
      elif [ "$size" -lt "$offset" ]; then
        offset=0 overlap=0 # truncated
      fi
      [ "$size" -gt "$offset" ] || [ "$force" = 1 ] || [ "$inode" != "$known" ] || continue
      offset=$((offset - overlap))
      printf '\n%s log %s %s %s %s\n' "$mark" "$key" "$inode" "$size" "$offset"
      tail -c "+$((offset + 1))" -- "$path" 2>/dev/null | head -c "$cap"
    done
}
poll() {
  SLURM_TIME_FORMAT=%s
  export SLURM_TIME_FORMAT
  printf '%s clock %s\n' "$mark" "$(date +%s)"
  text=$(squeue -h -r -t all -u "$(id -un)" -o '%A|%i|%T|%r|%V|%S|%e|%N|%k' 2>&1)
  printf '%s squeue %s\n%s\n' "$mark" "$?" "$text"
  if [ -n "$ask" ]; then
    text=$(for job in $(printf %s "$ask" | tr , ' '); do scontrol -o show job "$job" 2>/dev/null; done)
    printf '%s scontrol %s\n%s\n' "$mark" "$?" "$text"
    text=$(sacct -X -n -P "--jobs=$ask" --format=JobID,State,ExitCode,Submit,Start,End,NodeList 2>&1)
    printf '%s sacct %s\n%s\n' "$mark" "$?" "$text"
  fi
  find_logs | while IFS= read -r line; do printf '%s found %s\n' "$mark" "$line"; done
  [ -z "$states" ] || printf '%s\n' "$states" | while read -r key of; do
    printf '%s state %s\n' "$mark" "$key"
    cat "$HOME/.trainplan/runs/$of"/attempt-*/state 2>/dev/null
  done
  [ -z "$tails" ] || read_tails
  printf '\n%s end\n' "$mark"
}
if command -v gzip >/dev/null 2>&1; then poll | gzip -c1; else poll; fi
