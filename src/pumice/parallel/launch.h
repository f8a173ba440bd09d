// Who this process is among those that were started together: read from what launchers set.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace pumice {

using Environment = std::map<std::string, std::string>;

// What read_launch looks at, as it is set in this process.
Environment launch_environment();

struct Launch {
  int rank = 0;
  int size = 1;             // 1: alone, nothing of the rest means anything
  std::string host = {};    // where rank 0 listens
  std::uint16_t port = 0;   // and where there
  std::string source = {};  // whose variables were believed: "RANK and WORLD_SIZE", "Open MPI", …

  bool alone() const { return size == 1; }
};

// In this order, the first that is there:
//   RANK, WORLD_SIZE                      torchrun, or by hand
//   OMPI_COMM_WORLD_RANK, …_SIZE          Open MPI's mpirun
//   SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS    srun. Not in a batch script itself
//                                         (SLURM_JOB_ID without SLURM_STEP_ID): that is one
//                                         process.
// The meeting point is MASTER_ADDR and MASTER_PORT; the port after it if torchrun says that it
// listens at this one itself (TORCHELASTIC_USE_AGENT_STORE). Where they are not set:
//   address  127.0.0.1 if all processes are provably on one host (LOCAL_WORLD_SIZE,
//            OMPI_COMM_WORLD_LOCAL_SIZE or Slurm's number of nodes say so); under Slurm the first
//            node of its list, or SLURM_LAUNCH_NODE_IPADDR if there is no list; otherwise an Error
//   port     from the number of the job where the launcher gives one (20000 … 32767, the same in
//            all processes of a job); 29500 if the address is this host's own; otherwise an Error
// Throws Error, naming the variables, for half of a pair, for what is no number or out of range,
// and for RANK, WORLD_SIZE that contradict Open MPI's (except under torchrun, which may itself have
// been started by mpirun), or where only PMI_SIZE says that there are several (MPICH). A world of
// one is alone, and needs no meeting point.
Launch read_launch(const Environment& environment);

// The first host of Slurm's short form: "node[03-05,9],gpu1" → "node03".
std::string first_slurm_host(const std::string& list);

}  // namespace pumice
