#!/bin/sh
# Wraps the cluster's sbatch while a run is launched, and marks the jobs that the launcher submits, so that no
# job is lost or submitted twice if an answer gets lost. Needs TRAINPLAN_ATTEMPT (a folder) and
# TRAINPLAN_TOKEN.
set -u
folder=$(cd "$(dirname "$0")" && pwd)
path=
rest=$PATH:
while [ -n "$rest" ]; do
  one=${rest%%:*}
  rest=${rest#*:}
  [ "$one" = "$folder" ] || path=$path${path:+:}$one
done
PATH=$path
export PATH

umask 077
number=1
mkdir -p "$TRAINPLAN_ATTEMPT/jobs" || exit 1
until mkdir "$TRAINPLAN_ATTEMPT/jobs/$number" 2>/dev/null; do
  number=$((number + 1))
  [ "$number" -le 99 ] || { echo "sbatch: error: Can't create $TRAINPLAN_ATTEMPT/jobs/$number" >&2; exit 1; }
done
note=$TRAINPLAN_ATTEMPT/jobs/$number
token=$TRAINPLAN_TOKEN/$number

# The launcher's comment is kept before the token. A requeued job would be another measurement.
parsable='' commented='' excluded='' next=''
for argument; do
  shift
  case $next/$argument in
    comment/*) argument="$argument $token" commented=yes next= ;;
    exclude/*) argument=$argument${TRAINPLAN_EXCLUDE:+,$TRAINPLAN_EXCLUDE} excluded=yes next= ;;
    /--comment) next=comment ;;
    /--comment=*) argument="$argument $token" commented=yes ;;
    /--exclude | /-x) next=exclude ;;
    /--exclude=*) argument=$argument${TRAINPLAN_EXCLUDE:+,$TRAINPLAN_EXCLUDE} excluded=yes ;;
    /--parsable) parsable=yes ;;
    /--requeue) argument=--no-requeue ;;
  esac
  set -- "$@" "$argument"
done
[ -n "$commented" ] || set -- "--comment=$token" "$@"
[ -n "$excluded" ] || [ -z "${TRAINPLAN_EXCLUDE:-}" ] || set -- "--exclude=$TRAINPLAN_EXCLUDE" "$@"
printf '%s\n' "$token" >"$note/token" || exit 1

sbatch --no-requeue "$@" >"$note/out" 2>"$note/err"
code=$?
id=$(sed -n 's/^\(Submitted batch job \)\{0,1\}\([0-9][0-9]*\)\([; ].*\)\{0,1\}$/\2/p' "$note/out" | head -n 1)

# sbatch may fail although Slurm accepted the job: then the queue has the token.
if [ -z "$id" ]; then
  tries=1 refused=yes
  ! grep -qiE 'timed out|contact|connection|socket|communication|zero bytes' "$note/err" || tries=15 refused=''
  while [ "$tries" -gt 0 ]; do
    id=$(squeue -h -t all -u "$(id -un)" -o '%A %k' 2>/dev/null | awk -v t="$token" '{for (i = 2; i <= NF; i++) if ($i == t) {print $1; exit}}')
    [ -z "$id" ] || break
    tries=$((tries - 1))
    [ "$tries" -eq 0 ] || sleep 2
  done
  if [ -n "$id" ]; then
    code=0
    if [ -n "$parsable" ]; then echo "$id"; else echo "Submitted batch job $id"; fi >"$note/out"
  fi
fi
if [ -n "$id" ]; then
  printf '%s\n' "$id" >"$note/id.new" && mv "$note/id.new" "$note/id"
elif [ -n "$refused" ] && [ "$code" -ne 0 ]; then
  : >"$note/refused"
fi
cat "$note/out"
cat "$note/err" >&2
exit "$code"
