# Cancels jobs, of steps too. Needs: jobs, with spaces between them; mark.
for job in $jobs; do
  text=$(scancel "$job" 2>&1)
  printf '%s scancel %s %s %s\n' "$mark" "$job" "$?" "$(printf %s "$text" | tr '\n' ' ')"
done
