# Cancels jobs. Prints MARK scancel JOB CODE MESSAGE for each. Needs: jobs, separated by spaces; mark.
for job in $jobs; do
  text=$(scancel "$job" 2>&1)
  printf '%s scancel %s %s %s\n' "$mark" "$job" "$?" "$(printf %s "$text" | tr '\n' ' ')"
done
