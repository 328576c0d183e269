# Prints how far the job of a probe is: "done" and the result, "ended" and the end of its log, or what Slurm says of it and the
# last line of the log. Needs: id, submitted (the job).
here=$HOME/.trainplan/probes/$id
if [ -s "$here/result.json" ]; then
  echo done
  cat "$here/result.json"
elif state=$(squeue -h -t PD,CF,R,CG,S -j "$submitted" -o '%T' 2>&1) && [ -n "$state" ]; then
  echo "$state"
  [ ! -r "$here/job.log" ] || tail -n 1 "$here/job.log"
else
  case $state in
    '' | *[Ii]nvalid*[Jj]ob*)
      # The file system may show a result later than Slurm the job's end.
      sleep 2
      if [ -s "$here/result.json" ]; then
        echo done
        cat "$here/result.json"
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
fi
return 0
