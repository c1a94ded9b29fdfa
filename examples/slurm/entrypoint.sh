#!/bin/sh
# What each task of job.sh runs: Slurm's numbers by the names that torch.distributed reads, then the command behind it.
# The job starts it in the folder from which it was submitted:
#
#     cd examples && sbatch slurm/job.sh
#
# Every rank of a node is a task of its own here, so torchrun is not needed.
export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID" WORLD_SIZE="$SLURM_NTASKS"
# The node on which the batch script runs, which has rank 0, and a port that differs from job to job.
export MASTER_ADDR="$SLURM_LAUNCH_NODE_IPADDR" MASTER_PORT="$((20000 + SLURM_JOB_ID % 10000))"
exec "$@"
