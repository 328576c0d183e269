# Prints a run's folder, then SIZE PATH of each file, each terminated by a zero byte. Needs: pattern (of a
# shell), log, job, checkpoints, profiles.
folder='' shared=yes
case $pattern in *'*'*) shared= ;; esac
eval "for one in $pattern; do
  [ -d \"\$one\" ] || continue
  case \$log in \"\$one\"/*) folder=\$one ;; esac
  [ -n \"\$log\" ] || folder=\$one
done"
[ -n "$folder" ] || return 0
cd "$folder" || return 1
printf '%s\0' "$folder"
set -- . -type f
[ -z "$shared" ] || set -- "$@" -name "*[!0-9]${job}[!0-9]*"
[ -n "$checkpoints" ] || set -- "$@" ! -path '*/checkpoints/*' ! -name '*.distcp'
[ -n "$profiles" ] || set -- "$@" ! -name '*.nsys-rep' ! -name '*.sqlite'
find "$@" -printf '%s %P\0'
