#!/usr/bin/env bash
# Builds a dataset in parts, one for each task of a Slurm array:
#
#   array=$(sbatch --parsable examples/slurm/build.sh s3://bucket/photos s3://bucket/dataset --resize short:256)
#   sbatch --dependency=afterany:"$array" --wrap \
#     "stoker build s3://bucket/photos s3://bucket/dataset --resize short:256 --finish"
#
# The last part publishes the dataset; the second job does so where it could not, or says which parts must run again.
#SBATCH --job-name=stoker-build
#SBATCH --array=0-7
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --requeue
set -euo pipefail

exec stoker build "$@" --part auto --threads "${SLURM_CPUS_PER_TASK:-1}"
