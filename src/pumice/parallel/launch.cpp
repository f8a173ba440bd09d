#include "pumice/parallel/launch.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "pumice/core/error.h"

namespace pumice {
namespace {

constexpr std::array variables{
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "LOCAL_WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_USE_AGENT_STORE",
    "PMI_RANK",
    "PMI_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_MCA_ess_base_jobid",
    "PMIX_NAMESPACE",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_STEPID",
    "SLURM_NNODES",
    "SLURM_STEP_NUM_NODES",
    "SLURM_JOB_NODELIST",
    "SLURM_STEP_NODELIST",
    "SLURM_LAUNCH_NODE_IPADDR",
};

constexpr std::uint16_t customary_port = 29500;  // of torch, on one host
// Below the ports that systems hand out by themselves.
constexpr std::uint64_t first_port = 20000, port_count = 12768;

// Variables that are set to nothing count as not set: scripts export them that way.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  std::optional<std::string> text_of(const std::string& name) const {
    const auto found = environment_.find(name);
    if (found == environment_.end() || found->second.empty()) return std::nullopt;
    return found->second;
  }
  bool has(const std::string& name) const { return text_of(name).has_value(); }

  std::optional<int> number(const std::string& name, int smallest, int largest) const {
    const std::optional<std::string> value = text_of(name);
    if (!value) return std::nullopt;
    int result = 0;
    const char* end = value->data() + value->size();
    const auto [stop, reason] = std::from_chars(value->data(), end, result);
    if (reason != std::errc() || stop != end || result < smallest || result > largest) {
      fail(name, ": '", *value, "', must be a whole number in ", smallest, " … ", largest);
    }
    return result;
  }

  // The first that is set.
  std::optional<std::string> first_of(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (const auto value = text_of(name)) return value;
    }
    return std::nullopt;
  }

 private:
  const Environment& environment_;
};

constexpr int most_processes = 100000;

struct Place {
  int rank = 0, size = 1;
};

// Both or neither. A size of one needs no rank.
std::optional<Place> place(const Reader& reader, const std::string& rank_name,
                           const std::string& size_name) {
  const std::optional<int> size = reader.number(size_name, 1, most_processes);
  const std::optional<int> rank = reader.number(rank_name, 0, most_processes - 1);
  if (!rank && !size) return std::nullopt;
  if (!rank && *size == 1) return Place{};
  if (!rank) fail(rank_name, ": not set, must be with ", size_name, " = ", *size);
  if (!size) fail(size_name, ": not set, must be with ", rank_name, " = ", *rank);
  if (*rank >= *size) {
    fail(rank_name, ": ", *rank, ", must be below ", size_name, " = ", *size);
  }
  return Place{*rank, *size};
}

std::optional<Place> slurm_place(const Reader& reader) {
  const bool in_step = reader.has("SLURM_STEP_ID") || reader.has("SLURM_STEPID");
  // A batch script, or a shell of salloc: Slurm tells of the tasks to come, this is none of them.
  if (!reader.has("SLURM_PROCID") || (reader.has("SLURM_JOB_ID") && !in_step)) return std::nullopt;
  return place(reader, "SLURM_PROCID",
               reader.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS");
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

enum class Launcher { torch, open_mpi, slurm };

bool on_one_host(const Reader& reader, Launcher launcher, int size) {
  switch (launcher) {
    case Launcher::torch:
      return reader.number("LOCAL_WORLD_SIZE", 1, most_processes) == size;
    case Launcher::open_mpi:
      return reader.number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, most_processes) == size;
    case Launcher::slurm:
      return reader.first_of({"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}) == "1";
  }
  return false;
}

std::string meeting_host(const Reader& reader, Launcher launcher, int size) {
  if (const auto given = reader.text_of("MASTER_ADDR")) return *given;
  if (on_one_host(reader, launcher, size)) return "127.0.0.1";
  if (launcher == Launcher::slurm) {
    if (const auto list = reader.first_of({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"})) {
      return first_slurm_host(*list);
    }
    if (const auto address = reader.text_of("SLURM_LAUNCH_NODE_IPADDR")) return *address;
  }
  fail("MASTER_ADDR: not set, must name the host of rank 0 (", size,
       " processes, and nothing says that all are on one host)");
}

// What all processes of a job know and other jobs on the same host do not share.
std::optional<std::string> job_of(const Reader& reader, Launcher launcher) {
  if (launcher == Launcher::open_mpi) {
    return reader.first_of({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
  }
  if (launcher == Launcher::slurm) {
    const auto job = reader.text_of("SLURM_JOB_ID");
    const auto step = reader.first_of({"SLURM_STEP_ID", "SLURM_STEPID"});
    if (job) return text(*job, ".", step.value_or("0"));
  }
  return std::nullopt;
}

std::uint16_t port_of_job(const std::string& job) {
  std::uint64_t sum = 14695981039346656037ULL;  // FNV-1a: the same on every machine
  for (const char letter : job) {
    sum = (sum ^ static_cast<unsigned char>(letter)) * 1099511628211ULL;
  }
  return static_cast<std::uint16_t>(first_port + sum % port_count);
}

std::uint16_t meeting_port(const Reader& reader, Launcher launcher, const std::string& host) {
  if (const auto given = reader.number("MASTER_PORT", 1, 65535)) {
    // torchrun may listen there itself, for workers that meet in its store.
    const bool taken = reader.text_of("TORCHELASTIC_USE_AGENT_STORE") == "True";
    return static_cast<std::uint16_t>(!taken ? *given : *given < 65535 ? *given + 1 : *given - 1);
  }
  if (const auto job = job_of(reader, launcher)) return port_of_job(*job);
  if (is_loopback(host)) return customary_port;
  fail("MASTER_PORT: not set, must be a free port of ", host, ", the same for all processes");
}

// Every process would take itself for the only one, and all would write the same file.
void refuse_unknown_mpi(const Reader& reader) {
  if (const auto size = reader.number("PMI_SIZE", 1, most_processes); size && *size > 1) {
    fail("PMI_SIZE: ", *size,
         " processes, but nothing says who is who; RANK (as PMI_RANK), WORLD_SIZE, MASTER_ADDR and "
         "MASTER_PORT must be set");
  }
}

}  // namespace

Environment launch_environment() {
  Environment environment;
  for (const char* name : variables) {
    if (const char* value = std::getenv(name)) environment[name] = value;
  }
  return environment;
}

std::string first_slurm_host(const std::string& list) {
  std::string host;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    const std::size_t close = list.find(']', i);
    if (close == std::string::npos) fail("Slurm's list of nodes: '", list, "', a ] is missing");
    host += list.substr(i + 1, list.find_first_of(",-]", i) - i - 1);
    i = close;
  }
  if (host.empty()) fail("Slurm's list of nodes: '", list, "', must begin with a host");
  return host;
}

Launch read_launch(const Environment& environment) {
  const Reader reader(environment);
  const std::optional<Place> torch = place(reader, "RANK", "WORLD_SIZE");
  const std::optional<Place> open_mpi =
      place(reader, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  if (torch && open_mpi && !reader.has("TORCHELASTIC_RUN_ID") &&
      (torch->rank != open_mpi->rank || torch->size != open_mpi->size)) {
    fail("RANK, WORLD_SIZE: ", torch->rank, " of ", torch->size, ", but Open MPI says ",
         open_mpi->rank, " of ", open_mpi->size, "; must agree, or RANK and WORLD_SIZE be unset");
  }
  const std::optional<Place> slurm = torch || open_mpi ? std::nullopt : slurm_place(reader);
  if (!torch && !open_mpi && !slurm) {
    refuse_unknown_mpi(reader);
    return {};
  }
  const Launcher launcher = torch      ? Launcher::torch
                            : open_mpi ? Launcher::open_mpi
                                       : Launcher::slurm;
  const Place& own = torch ? *torch : open_mpi ? *open_mpi : *slurm;
  Launch launch{.rank = own.rank, .size = own.size};
  if (launch.alone()) return launch;
  launch.source = torch ? "RANK and WORLD_SIZE" : open_mpi ? "Open MPI" : "Slurm";
  launch.host = meeting_host(reader, launcher, launch.size);
  launch.port = meeting_port(reader, launcher, launch.host);
  return launch;
}

}  // namespace pumice
