# Looks at the GPUs of each node of a job. Every line of the result is a key, a tab and a text. A key begins with the node's name; one that
# ends with "!" has the exit code of a command. ALL_REDUCE_PERF may name nccl-tests' program, if it is not in PATH.
if [ "${1-}" != node ]; then
  # Without MPI, since a program that was built with it would otherwise join those of the other nodes.
  srun --kill-on-bad-exit=0 --mpi=none sh "$PWD/job.sh" node >result
  exit
fi

node=${SLURMD_NODENAME:-$(hostname)}
tell() { printf '%s\t%s\n' "$1" "$2"; }

# tell_all KEY CODE TEXT
tell_all() {
  tell "$node $1!" "$2"
  printf '%s\n' "$3" | while IFS= read -r line; do tell "$node $1" "$line"; done
}

tell node "$node"
fields=index,name,clocks.sm,clocks.max.sm,power.limit,power.default_limit,temperature.gpu,memory.used,memory.total
fields=$fields,ecc.errors.uncorrected.volatile.total
smi() { timeout -k 5 60 nvidia-smi "--query-gpu=$fields,$1" --format=csv,noheader,nounits 2>&1; }
command -v nvidia-smi >/dev/null 2>&1 || { tell_all smi 127 "not found"; exit 0; }
gpus=$(smi clocks_event_reasons.active)
code=$?
# Older drivers have another name for it.
case $gpus in
  *"not a valid field"*)
    gpus=$(smi clocks_throttle_reasons.active)
    code=$?
    ;;
esac
tell_all smi "$code" "$gpus"

program=${ALL_REDUCE_PERF:-all_reduce_perf}
count=$(printf '%s\n' "$gpus" | grep -c '^ *[0-9][0-9]*,')
[ "$code" = 0 ] && [ "$count" -gt 1 ] || exit 0
if command -v "$program" >/dev/null 2>&1; then
  said=$(timeout -k 5 120 "$program" -b 1G -e 1G -g "$count" 2>&1)
  tell_all all-reduce $? "$said"
elif [ -n "${ALL_REDUCE_PERF-}" ]; then
  tell_all all-reduce 127 "ALL_REDUCE_PERF: $program not found"
fi
