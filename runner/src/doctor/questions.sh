# Describes a login node and its Slurm. Every line of the answer is KEY, a tab and a text; "KEY!" has the exit code of a command.
# Needs: partitions, accounts, qos and programs (words), places, whole. If whole is not empty, it also asks for what no job depends
# on, and submits a held job, which it cancels.

tell() { printf '%s\t%s\n' "$1" "$2"; }

limited() {
  if command -v timeout >/dev/null 2>&1; then timeout 15 "$@"; else "$@"; fi
}

# ask KEY COMMAND...
ask() {
  key=$1
  shift
  answer=$(limited "$@" 2>&1)
  tell "$key!" $?
  printf '%s\n' "$answer" | while IFS= read -r line; do tell "$key" "$line"; done
}

tell user "$(id -un)"
tell shell "$(getent passwd "$(id -un)" 2>/dev/null | cut -d: -f7)"
tell system "$( (. /etc/os-release && printf '%s' "$PRETTY_NAME") 2>/dev/null || uname -sr)"
tell host "$(hostname 2>/dev/null || uname -n)"
tell home "$HOME"
if file=$(mktemp "$HOME/.trainplan.XXXXXX" 2>&1); then
  rm -f "$file"
else
  tell home-refuses "$file"
fi
for tool in stat tail head cksum setsid nohup mktemp timeout sha256sum; do
  command -v "$tool" >/dev/null 2>&1 || tell lacks "$tool"
done
[ "$(printf abc | tail -c +2 2>/dev/null | head -c 1 2>/dev/null)" = b ] || tell lacks "tail -c and head -c"
stat -c %s / >/dev/null 2>&1 || tell lacks "stat -c"
for program in $programs; do
  command -v "$program" >/dev/null 2>&1 || tell lacks-program "$program"
done

# free KEY PATH: free kilobytes on the path's file system.
free() { tell "$1" "$(df -Pk "$2" 2>/dev/null | awk 'NR == 2 { print $4 }')"; }
free home-free "$HOME"

# A place is NAME, KIND, a file that must be in it and a shell word, separated by tabs.
tab=$(printf '\t')
printf '%s\n' "$places" | while IFS=$tab read -r name kind file word; do
  [ -n "$name" ] || continue
  eval "path=$word"
  # Without a trailing slash, to see a link to a directory as a link.
  tell "$name $kind" "$path"
  case $kind/$path in
    # Other images are names in a registry. A mounted file is rare, but allowed.
    container/[!/]*) continue ;;
    container/* | mount/*) [ -e "$path" ] || tell "$name $kind lacks" "$path"; continue ;;
  esac
  [ -d "$path" ] || { tell "$name $kind lacks" "$path"; continue; }
  [ -e "$path/$file" ] || tell "$name $kind lacks" "$path/$file"
  case $kind in
    install)
      free "$name free" "$path"
      [ -w "$path" ] || tell "$name read-only" "$path"
      # Release 26.06.01 has some deeper in its checkout.
      for launch in "$path"/launch.sh "$path"/*/launch.sh "$path"/*/*/launch.sh \
        "$path"/llmb_repo/*/*/launch.sh "$path"/llmb_repo/*/*/*/launch.sh; do
        [ ! -f "$launch" ] || tell "$name launch" "${launch#"$path"/}"
      done
      for image in "$path"/images/*.sqsh; do
        [ ! -f "$image" ] || tell "$name image" "$(basename "$image" .sqsh)"
      done
      for workload in "$path"/workloads/*/; do
        [ ! -d "$workload" ] || tell "$name workload" "$(basename "$workload")"
      done ;;
  esac
done

# An installation of NVIDIA's recipe collection that the user's shell names, for llmb-run.
if [ -n "$whole" ] && [ -n "${LLMB_INSTALL:-}" ]; then
  tell llmb "$LLMB_INSTALL"
  tell llmb-gpu "$(sed -n 's/^ *gpu_type: *//p' "$LLMB_INSTALL/cluster_config.yaml" 2>/dev/null | head -n 1 | tr -d "\"'")"
  for workload in "$LLMB_INSTALL"/workloads/*/; do
    [ ! -d "$workload" ] || tell llmb-workload "$(basename "$workload")"
  done
fi

for tool in sbatch squeue scancel scontrol sinfo; do
  command -v "$tool" >/dev/null 2>&1 || tell lacks-slurm "$tool"
done
command -v sbatch >/dev/null 2>&1 || exit 0
# Some sites wrap sbatch: it is called only if that is checked.
[ -z "$whole" ] || ask version sbatch --version
ask controller scontrol ping
case $answer in *" is UP"* | *" are UP"* | *"UP/"* | *"/UP"*) ;; *) exit 0 ;; esac
ask config scontrol show config
# One database may have the accounts of several clusters.
cluster=$(printf '%s\n' "$answer" | sed -n 's/^ClusterName *= *//p' | head -n 1)
if [ -z "$partitions" ] && [ -n "$whole" ]; then
  partitions=$(sinfo --noheader --format=%P 2>/dev/null | grep '\*$' | head -n 1 | tr -d '*')
  tell partition-default "$partitions"
fi
restricted=
own_qos=
for partition in $partitions; do
  ask "partition $partition" scontrol --oneliner show partition "$partition"
  case $answer in *" AllowAccounts=ALL "*) ;; *) restricted=yes ;; esac
  # The limits of a partition's own QOS come before those of a job's.
  own=$(printf '%s\n' "$answer" | sed -n 's/.* QoS=\([^ ]*\).*/\1/p' | head -n 1)
  [ "$own" = N/A ] || own_qos="$own_qos $own"
  ask "nodes $partition" sinfo --noheader --partition="$partition" '--format=%D %t %G'
done
if command -v sacctmgr >/dev/null 2>&1; then
  for account in $accounts; do
    ask "account $account" sacctmgr --noheader --parsable2 show associations \
      ${cluster:+"cluster=$cluster"} "user=$(id -un)" "account=$account" format=Account,Partition
    # Where a partition names accounts, newer Slurm also means those below them. The row without a user names the account above.
    above=$account
    for _ in 1 2 3 4 5 6 7 8; do
      [ -n "${restricted:+$above}" ] || break
      above=$(limited sacctmgr --noheader --parsable2 show associations ${cluster:+"cluster=$cluster"} \
        "account=$above" format=User,ParentName 2>/dev/null | sed -n 's/^|//p' | head -n 1)
      [ -z "$above" ] || tell "above $account" "$above"
    done
  done
  # shellcheck disable=SC2086 # names are words
  for name in $(printf '%s\n' $qos $own_qos | sort -u); do
    ask "qos $name" sacctmgr --noheader --parsable2 show qos "name=$name" format=Name,Flags,MaxWall
  done
  [ -z "$qos" ] || ask associations sacctmgr --noheader --parsable2 show associations \
    ${cluster:+"cluster=$cluster"} "user=$(id -un)" format=Account,QOS
fi
[ -n "$whole" ] || exit 0
ask sacct sacct -X -n -P --starttime=now-1hours --format=JobIDRaw

# A held job shows whether jobs keep their comments, by which runs find their jobs. It never starts.
mark=trainplan:doctor/$$
tell mark "$mark"
set -- --hold --parsable --job-name=trainplan-doctor "--comment=$mark" --nodes=1 --time=1 --output=/dev/null
[ -z "$partitions" ] || set -- "$@" "--partition=$(printf '%s' "$partitions" | tr ' ' ,)"
[ -z "$accounts" ] || set -- "$@" "--account=$accounts"
ask probe sbatch "$@" --wrap=true
job=$(printf '%s\n' "$answer" | sed -n 's/^\([0-9][0-9]*\)\(;.*\)\{0,1\}$/\1/p' | head -n 1)
# Even if the answer got lost, the job is found by its mark or its name.
[ -n "$job" ] || job=$(limited squeue --noheader --user="$(id -un)" --name=trainplan-doctor --format=%A 2>/dev/null)
if [ -n "$job" ]; then
  ask comment squeue --noheader --jobs="$(printf '%s' "$job" | tr '\n' ,)" --format=%k
  # shellcheck disable=SC2086 # ids are words
  ask cancelled scancel $job
fi
