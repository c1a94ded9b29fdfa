#!/bin/bash
# Printed by:
#   gputune deploy slurm sbatch --nodes 2 --gpus-per-node 8 --cpus-per-task 12 -- sh slurm/entrypoint.sh python ddp.py --verify --large
# Yours also names the gputune that printed it by its path. In examples/: sbatch slurm/job.sh
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=12

# shellcheck disable=all  # quoted already
command=(sh slurm/entrypoint.sh python ddp.py --verify --large)
gputune=(gputune)
device=all
budget=standard
must_tell=driver_mismatch,driver_missing,gpu_lost,nvml_missing
# A folder that all nodes share. The job creates its own folder in it.
folder="${SLURM_SUBMIT_DIR:-$PWD}"
profiles="$folder/gputune-$SLURM_JOB_ID"
# shellcheck disable=all  # quoted already
container=()
mount=()
probe=()

# Since Slurm 22.05 srun does not inherit --cpus-per-task.
export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"
# The probe measures all GPUs of a node at once, with the CPUs of all tasks.
probe=("--cpus-per-task=$((SLURM_CPUS_PER_TASK * ${SLURM_NTASKS_PER_NODE:-1}))")

# Probe each node once, and merge the profiles into one for all ranks.
measure() {
  mkdir -p "$profiles" && rm -f "$profiles"/*.yaml "$profiles"/*.report "$profiles"/*.log "$profiles"/*.check || return
  # shellcheck disable=SC2016  # each node expands its own name
  srun --nodes="$SLURM_NNODES" --ntasks="$SLURM_NNODES" --ntasks-per-node=1 --kill-on-bad-exit=1 \
    "${probe[@]}" "${container[@]}" "${mount[@]}" sh -c '
      file=$1/$SLURMD_NODENAME device=$2 budget=$3
      export SLURM_CPUS_PER_TASK="$4"  # the profile must suit the CPUs of one task
      must_tell=$5
      shift 5
      if [ "$device" = all ] &&
        ! timeout -k 5 60 "$@" check --timeout 20 --only "$must_tell" --fail-on unknown >"$file.check" 2>&1; then
        echo "gputune: $SLURMD_NODENAME: the driver or a GPU is in doubt; $file.check says why" >&2
      fi
      exec "$@" probe --device "$device" --budget "$budget" -o "$file.yaml" >"$file.report" 2>"$file.log"
    ' sh "$profiles" "$device" "$budget" "${SLURM_CPUS_PER_TASK-}" "$must_tell" "${gputune[@]}" || return
  srun --nodes=1 --ntasks=1 --ntasks-per-node=1 "${container[@]}" "${mount[@]}" \
    "${gputune[@]}" merge "$profiles"/*.yaml -o "$profiles/job.yaml"
}

tuned=()
if [ "${GPUTUNE_DISABLE-}" = 1 ]; then
  echo "gputune: GPUTUNE_DISABLE=1 is set: the command runs without gputune" >&2
elif measure; then
  tuned=("${mount[@]}" "${gputune[@]}" apply "$profiles/job.yaml" --)
else
  echo "gputune: no profile was measured; the command runs without one. Last message of each node:" >&2
  tail -n 1 "$profiles"/*.log >&2 2>/dev/null
fi
exec srun "${container[@]}" "${tuned[@]}" "${command[@]}"
