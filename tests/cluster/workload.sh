#!/usr/bin/env bash
# Stands in for the recipes: launches jobs and writes logs like each release.
#
#   workload.sh launch RELEASE FAMILY   as launch.sh: submits a job; in 24.11, launch.sh is the job
#   workload.sh llmb-run ARGUMENT...    as llmb-run
#   workload.sh torchrun ARGUMENT...    as torchrun with Megatron-LM, on every node
#   workload.sh train                   as the training, in every task of the job; the first writes the log
#
# In addition to the variables of the recipes it reads these:
#
#   WORKLOAD_SUBMIT      refuse: sbatch rejects the job; silent: it submits the job, but the launcher fails silently;
#                        timeout: it submits the job, and the launcher prints a timeout instead of its number and fails;
#                        killed: it submits the job, and the launcher is killed; lost: it prints a timeout without a job
#   WORKLOAD_SBATCH      the sbatch that the launcher calls, such as /usr/bin/sbatch
#   WORKLOAD_PATH        a directory that the launcher puts before its PATH
#   WORKLOAD_PRINT       the name of a variable that the launcher prints
#   WORKLOAD_DELAY       seconds before the launcher submits, and again before it prints
#   WORKLOAD_LATE        seconds before the log appears
#   WORKLOAD_PACE        real seconds per step
#   WORKLOAD_STEP_TIME   seconds per step in the log
#   WORKLOAD_FAULT       oom, watchdog, exit or hang: how training ends; nan: an invalid loss from then on;
#                        rotate or truncate: a change of the log; noise: an error after the last step
#   WORKLOAD_FAULT_STEP  number of steps before the fault
set -euo pipefail

: "${WORKLOAD_SBATCH:=sbatch}" "${WORKLOAD_PATH:=}" "${WORKLOAD_PRINT:=}"
: "${WORKLOAD_SUBMIT:=}" "${WORKLOAD_DELAY:=0}" "${WORKLOAD_LATE:=0}" "${WORKLOAD_PACE:=0.02}"
: "${WORKLOAD_STEP_TIME:=12.39}" "${WORKLOAD_FAULT:=}" "${WORKLOAD_FAULT_STEP:=20}"

timeout='sbatch: error: Batch job submission failed: Socket timed out on send/recv operation'

refuse() {
  echo "$*" >&2
  exit 1
}

# recorded GPUS: sets the name of an experiment of 26.06.01, as its real script was recorded, and the global batch size.
recorded() {
  local of_family
  of_family=$(grep "^${family}[^/]*/$GPU_TYPE/$DTYPE/$1@" "${self%/*}/recorded.tsv") || refuse "no recipe for $1 GPUs"
  name=$( (grep -F -e "-$MODEL_SIZE" <<<"$of_family" || echo "$of_family") | head -n 1 | cut -f 2)
  gbs=${name##*_gbs}
}

# layout GPUS: sets the layout that the release's script has for a model on so many GPUs, and its parts of the name.
layout() {
  local gpus=$1 pp=8
  case $release/$family/$MODEL_SIZE in
    */nemotron4/15b) gbs=$((gpus * 4)) ;;
    24.11/nemotron4/340b) gbs=$((gpus / 4)) ;; # 2 a node
    */nemotron4/340b)
      gbs=${GBS:-$((gpus / 4))}
      [ "${STRONG_SCALING:-false}" = false ] || gbs=512
      [ "${GPU_TYPE:-h100}" = h100 ] || pp=4
      parts=tp8_pp${pp}_cp1_vp12_mbs1_gbs$gbs ;;
    */llama3.1/8b) gbs=$((gpus * 16)) ;;
    */llama3.1/70b) gbs=$((gpus * 2)) ;;
    */llama3.1/405b)
      gbs=$((gpus / 2))
      case $gpus in 32 | 64) gbs=64 ;; 128) gbs=128 ;; esac ;;
    */nemotronh/56b)
      gbs=$((gpus * 3))
      parts=tp8_pp1_cp1_vpNone_mbs1_gbs$gbs ;;
    *) refuse "MODEL_SIZE $MODEL_SIZE is unsupported" ;;
  esac
}

# The job of 24.11, for which the user calls sbatch.
job_of_24_11() {
  local gpus folder
  export RELEASE=$release
  gpus=$((SLURM_JOB_NUM_NODES * ${SLURM_GPUS_PER_NODE:-8}))
  layout "$gpus"
  folder=$STAGE_PATH/results/24.11/${DTYPE,,}/$MODEL_SIZE/$gpus
  mkdir -p "$folder"
  export STEPS=${RUN_CONF_MAX_STEPS:-50} GBS=$gbs
  export LOG=$folder/log-nemo_nemotron4_${MODEL_SIZE}_${gpus}_$SLURM_JOB_ID.out
  sleep "$WORKLOAD_LATE"
  exec srun --ntasks-per-node=1 --open-mode=append --output="$LOG" --error="${LOG%.out}.err" "$self" train
}

# submit NUMBER EXPERIMENT STEPS GPUS TIME_LIMIT: submits and prints a task like NeMo-Run.
submit() {
  local number=$1 name=$2 steps=$3 gpus=$4 limit=$5 above folder prefix job nodes
  nodes=$(((gpus + 7) / 8))
  above=$results/experiments/$name/${name}_$(date +%s)
  folder=$above/$name
  prefix=$SBATCH_ACCOUNT-${SBATCH_ACCOUNT##*_}.
  mkdir -p "$folder/code"
  cat >"$above/${name}_sbatch.sh" <<END
#!/bin/bash
#SBATCH --account=$SBATCH_ACCOUNT
#SBATCH --exclusive
#SBATCH --job-name=$prefix$name
#SBATCH --mem=0
#SBATCH --nodes=$nodes
#SBATCH --open-mode=append
#SBATCH --output=$folder/sbatch_$prefix${name}_%j.out
#SBATCH --partition=$SBATCH_PARTITION
#SBATCH --time=$limit
export RELEASE=$release STEPS=$steps GBS=$gbs
export LOG=$folder/log-$prefix${name}_\${SLURM_JOB_ID}_\${SLURM_RESTART_COUNT:-0}.out
sleep $WORKLOAD_LATE
srun --ntasks-per-node=1 --open-mode=append --output="\$LOG" $self train
END
  sleep "$WORKLOAD_DELAY"
  if [ -n "$WORKLOAD_PRINT" ]; then echo "$WORKLOAD_PRINT=${!WORKLOAD_PRINT}"; fi
  if [ -n "$WORKLOAD_PATH" ]; then export PATH=$WORKLOAD_PATH:$PATH; fi
  if [ "$WORKLOAD_SUBMIT" = refuse ]; then export SBATCH_PARTITION=nowhere; fi
  if [ "$WORKLOAD_SUBMIT" = lost ]; then refuse "$timeout"; fi
  job=$("$WORKLOAD_SBATCH" --requeue --parsable "$above/${name}_sbatch.sh")
  sleep "$WORKLOAD_DELAY"
  case $WORKLOAD_SUBMIT in
    silent) exit 1 ;;
    timeout) refuse "$timeout" ;;
    killed) kill -KILL -- "-$(ps -o pgid= -p $$ | tr -d ' ')" ;;
  esac
  cat <<END

Experiment Status for ${above##*/}

Task $number: $name
- Status: SUBMITTED
- Executor: SlurmExecutor on localhost
- Job id: $job
- Local Directory: $folder

END
}

# launch.sh from 25.04 on.
launch() {
  local gpus=${JOB_TOTAL_GPUS:-} steps=${MAX_STEPS:-50} limit=${TIME_LIMIT:-} name number=0 parts=
  case $release/$family in
    */llama3.1) : "${MODEL_SIZE:=8b}" "${DTYPE:=bf16}" "${gpus:=8}" ;;
    25.04/*) : "${MODEL_SIZE:=15b}" "${gpus:=16}" ;;
    25.05/*) : "${MODEL_SIZE:=56b}" "${gpus:=256}" ;;
    26.06.01/*) : "${MODEL_SIZE:?}" ;;
    *) MODEL_SIZE=340b ;; # it has no other
  esac
  : "${DTYPE:=fp8}" "${gpus:?set JOB_TOTAL_GPUS}" "${limit:=00:30:00}"
  : "${SBATCH_ACCOUNT:?}" "${SBATCH_PARTITION:?}"
  case $release in
    25.04)
      results=${STAGE_PATH:?}
      [ "$family" != llama3.1 ] || : "${HF_TOKEN?}" ;;
    *)
      results=${LLMB_INSTALL:?}/workloads/$workload
      [ -z "${STAGE_PATH+set}" ] || refuse "STAGE_PATH must not be set" ;;
  esac
  if [ "$release" = 26.06.01 ]; then
    recorded "$gpus"
    submit 0 "$name" "$steps" "$gpus" "$limit"
    return
  fi
  layout "$gpus"
  name=pretrain_${family}_${MODEL_SIZE}_$DTYPE
  if [ "$release" = 25.04 ]; then name+=_$gpus; else name+=_gpus${gpus}_$parts; fi
  if [ "${ENABLE_PROFILE:-false}" = true ]; then
    [ "$family" != llama3.1 ] || steps=${PROFILE_STOP_STEP:-25}
    [ "$release/$family" != 25.04/nemotron4 ] || name+=_nsys
  fi
  if [ "$family" != llama3.1 ]; then
    submit 0 "$name" "$steps" "$gpus" "$limit"
    return
  fi
  # Each is another experiment.
  [ "${DISABLE_PERFRUN:-false}" = true ] || submit 0 "$name" "$steps" "$gpus" "$limit"
  [ "${ENABLE_PROFILE:-false}" = false ] || submit 0 "${name}_nsys" "$steps" "$gpus" "$limit"
  [ "${ENABLE_NCCLTRACE:-false}" = false ] || submit 0 "${name}_nccltrace" 5 "$gpus" 00:15:00
}

# setting KEY: prints a setting of llmb-run's configuration.
setting() { sed -n "s/^ *$1: *//p" "$LLMB_INSTALL/cluster_config.yaml"; }

llmb_run() {
  local command=${1:-} output job folder workload size dtype scale
  shift || true
  case $command in
    single | submit) ;;
    *) echo "llmb-run: no such command: $command" >&2 && exit 2 ;;
  esac
  while [ $# -gt 0 ]; do
    case $1 in
      -w) workload=$2 ;;
      -s) size=$2 ;;
      -d | --dtype) dtype=$2 ;;
      --scale) scale=$2 ;;
      *) echo "llmb-run: no such option: $1" >&2 && exit 2 ;;
    esac
    shift 2
  done
  [ -z "${SLURM_JOB_ID:-}" ] || refuse "llmb-run must not run inside a Slurm job"
  case $workload in
    pretrain_gpt_oss) folder=gpt-oss/pretrain ;;
    pretrain_qwen3) folder=qwen3/pretrain ;;
    pretrain_nemotron_3) folder=nemotron3 ;;
    *) folder=${workload#pretrain_} ;;
  esac
  cd "$LLMB_INSTALL/llmb_repo/$folder"
  SBATCH_ACCOUNT=$(setting account)
  SBATCH_PARTITION=$(setting gpu_partition)
  GPU_TYPE=$(setting gpu_type)
  export SBATCH_ACCOUNT SBATCH_PARTITION GPU_TYPE MODEL_SIZE=$size DTYPE=$dtype JOB_TOTAL_GPUS=$scale
  output=$(./launch.sh) || refuse "ERROR: ${workload}_$size dtype=$dtype scale=$scale"
  job=$(sed -n 's/^- Job id: //p' <<<"$output")
  folder=$(sed -n 's/^- Local Directory: //p' <<<"$output")
  printf '\nLaunch Output:\n%s\n' "$output"
  printf 'LAUNCHED: %-30s dtype=%-6s scale=%-6s profile=False   jobid=%s\n' "${workload}_$size" "$dtype" "$scale" "$job"
  echo "JobID: $job, Workdir: $folder"
  printf 'job_info:\n  job_id: %s\ncontainer_info:\n  images:\n  - nvcr.io#nvidia/nemo:26.04.01\n' "$job" \
    >"$folder/llmb-config_$job.yaml"
}

# line STEP: prints a step like the release.
line() {
  local step=$1 last=$((STEPS - 1)) loss=11.96 samples=$((GBS * ($1 + 1)))
  if [ "$WORKLOAD_FAULT" = nan ] && [ "$step" -ge "$WORKLOAD_FAULT_STEP" ]; then loss=nan; fi
  if [ "$RELEASE" = 24.11 ]; then
    # A progress bar, redrawn on one line.
    printf '\rEpoch 0: : %3d%%|#####     | %d/%d [00:01<00:01, reduced_train_loss=%s, global_step=%d.00, ' \
      $((100 * (step + 1) / STEPS)) $((step + 1)) "$STEPS" "$loss" "$step"
    printf 'consumed_samples=%d.0, train_step_timing in s=%s]' "$samples" "$WORKLOAD_STEP_TIME"
    [ "$step" -lt "$last" ] || echo
  elif [ "$RELEASE" = 26.06.01 ]; then
    printf 'Step Time : %ss GPU utilization: 400.0MODEL_TFLOP/s/GPU\n' "$WORKLOAD_STEP_TIME"
    printf ' [2026-01-01 00:00:00] iteration %8d/%8d | consumed samples: %12d | ' $((step + 1)) "$STEPS" "$samples"
    printf 'elapsed time per iteration (ms): %s | learning rate: 3.0E-06 | ' \
      "$(awk "BEGIN { printf \"%.1f\", $WORKLOAD_STEP_TIME * 1000 }")"
    printf 'global batch size: %5d | lm loss: %s | grad norm: 1.234 |\n' "$GBS" "$loss"
  else
    printf 'Training epoch 0, iteration %d/%d | lr: 7.496e-06 | global_batch_size: %d | global_step: %d | ' \
      "$step" "$last" "$GBS" "$step"
    printf 'reduced_train_loss: %s | train_step_timing in s: %s | consumed_samples: %d\n' \
      "$loss" "$WORKLOAD_STEP_TIME" "$samples"
  fi
}

train() {
  local step
  [ "$SLURM_PROCID" -eq 0 ] || exit 0 # one task is enough to hold the nodes
  echo "stand-in workload, release $RELEASE, on $SLURM_JOB_NUM_NODES nodes" >>"$LOG"
  for ((step = 0; step < STEPS; step++)); do
    if [ "$step" -eq "$WORKLOAD_FAULT_STEP" ]; then fault >>"$LOG"; fi
    sleep "$WORKLOAD_PACE"
    line "$step" >>"$LOG"
  done
  if [ "$WORKLOAD_FAULT" = noise ]; then
    echo "torch.distributed: destroy_process_group: connection reset by peer" >>"$LOG"
    exit 1
  fi
}

# Megatron-LM's training, by its standard output.
torchrun() {
  local steps=50 gbs=1 step
  [ "$SLURM_PROCID" -eq 0 ] || exit 0
  while [ $# -gt 0 ]; do
    case $1 in
      --train-iters) steps=$2 ;;
      --global-batch-size) gbs=$2 ;;
    esac
    shift
  done
  for ((step = 1; step <= steps; step++)); do
    if [ "$step" -eq "$WORKLOAD_FAULT_STEP" ]; then fault; fi
    sleep "$WORKLOAD_PACE"
    printf ' [2026-01-01 00:00:00] iteration %8d/%8d | consumed samples: %12d | elapsed time per iteration (ms): %s000.0 | ' \
      "$step" "$steps" $((gbs * step)) "${WORKLOAD_STEP_TIME%.*}"
    printf 'learning rate: 3.0E-06 | global batch size: %5d | lm loss: 1.1E+01 | grad norm: 1.234 |\n' "$gbs"
  done
}

fault() {
  case $WORKLOAD_FAULT in
    oom)
      echo "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 0 has a total capacity of 79.11 GiB."
      exit 1 ;;
    watchdog)
      echo "[rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001 milliseconds before timing out."
      exit 1 ;;
    exit) exit 7 ;;
    hang) exec sleep infinity ;;
    rotate) mv "$LOG" "$LOG.1" ;;
    truncate) : >"$LOG" ;;
  esac
}

self=$(readlink -f "$0")
role=$1
shift
case $role in
  launch)
    release=$1 family=$2
    case $release/$family in
      */nemotronh) workload=pretrain_nemotronh ;;
      26.06.01/gpt-oss) workload=pretrain_gpt_oss ;;
      26.06.01/nemotron-3) workload=pretrain_nemotron_3 ;;
      26.06.01/*) workload=pretrain_$family ;;
      *) workload=pretrain_nemotron4-340b ;;
    esac
    if [ "$release" = 24.11 ]; then job_of_24_11; else launch; fi ;;
  llmb-run) llmb_run "$@" ;;
  train) train ;;
  torchrun) torchrun "$@" ;;
  *) refuse "no such role: $role" ;;
esac
