# Lists a run's files, each as SIZE PATH behind a zero byte, after its folder. Needs: pattern, as a shell reads it; log, job,
# checkpoints, profiles.
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
