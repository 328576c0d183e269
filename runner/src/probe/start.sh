# Submits the job of a probe, once, and prints its id. Needs: id, program (may be empty), job (the job's script), arguments (of
# sbatch, one a line).
umask 077
here=$HOME/.trainplan/probes/$id
mkdir -p "$HOME/.trainplan/probes" || return 1
if mkdir "$here" 2>/dev/null; then
  [ -z "$program" ] || printf '%s' "$program" >"$here/probe.py" || return 1
  printf '%s' "$job" >"$here/job.sh" || return 1
  set --
  while IFS= read -r argument; do
    set -- "$@" "$argument"
  done <<END
$arguments
END
  cd "$here" || return 1
  if ! sbatch "$@" --job-name="probe-$id" job.sh >submitted 2>refused; then
    cat refused >&2
    rm -r "$here"
    return 1
  fi
fi
# The answer of sbatch was lost if this is asked again while it runs: then the queue has the job's name.
submitted=$(sed -n 's/^\([0-9][0-9]*\).*/\1/p' "$here/submitted" | head -n 1)
[ -n "$submitted" ] || submitted=$(squeue -h -t all -n "probe-$id" -o %A | head -n 1)
printf '%s\n' "$submitted"
