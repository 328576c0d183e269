# Prints how far the job of a probe is: what Slurm says of it and the last line of its log; once it is over, "done" and the result, or
# "ended" and the end of the log. Needs: id, submitted (the job).
here=$HOME/.trainplan/probes/$id
state=$(squeue -h -t PD,CF,R,CG,S -j "$submitted" -o '%T' 2>&1)
code=$?
case $code/$state in
  0/?*)
    printf '%s\n' "$state"
    [ ! -r "$here/job.log" ] || tail -n 1 "$here/job.log"
    ;;
  0/ | *[Ii]nvalid*[Jj]ob*)
    # The file system may show a result later than Slurm the job's end.
    [ -s "$here/result" ] || sleep 2
    # The program writes what it has after each measurement, so that a job that was killed has a result, too.
    if [ -s "$here/result" ]; then
      echo done
      cat "$here/result"
    else
      echo ended
      tail -n 20 "$here/job.log" 2>/dev/null
    fi
    ;;
  *)
    echo UNKNOWN
    printf '%s\n' "$state" | head -n 1
    ;;
esac
return 0
