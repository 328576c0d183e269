# Writes a run's script to the cluster, whole or not at all. Prints the run's folder. Needs: run, script,
# wrapper, sha256.
umask 077
here=$HOME/.trainplan/runs/$run
mkdir -p "$here/bin" || return 1
partial=$here/partial.$$
printf '%s' "$script" | cat >"$partial" || { rm -f "$partial"; return 1; }
if command -v sha256sum >/dev/null 2>&1; then
  sum=$(sha256sum <"$partial") || return 1
  [ "${sum%% *}" = "$sha256" ] || { rm -f "$partial"; echo "$here/launch.sh was not transferred correctly" >&2; return 1; }
fi
mv -f "$partial" "$here/launch.sh" || return 1
printf '%s' "$wrapper" | cat >"$partial" || { rm -f "$partial"; return 1; }
chmod 700 "$partial" && mv -f "$partial" "$here/bin/sbatch" || return 1
printf '%s\n' "$here"
