// Several processes that work on one problem, over Gloo.
#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pumice/parallel/launch.h"
#include "pumice/parallel/roll_call.h"

namespace pumice {

struct ProcessGroupOptions {
  HeartbeatTimes heartbeat = {};
  std::chrono::milliseconds patience{120000};  // for all processes to arrive
  // Called from another thread when a process is lost, with a whole sentence. Default:
  // end_process(). If it returns, the function that waited for the lost process throws Error.
  std::function<void(const std::string& sentence)> on_loss = {};
};

// Says the sentence on standard error, removes files that are being written (AtomicFile), ends the
// process with exit code 1. No destructors run: the main thread may hang in a message for ever.
[[noreturn]] void end_process(const std::string& sentence);

// All processes make the same calls in the same order; a call returns when the data are there. Made
// from a launch of one process it does nothing, at no cost and without a network.
//
// A lost process (killed, stopped, its machine or network gone) is noticed by all others within the
// heartbeat's limit and a few seconds, whatever they are doing; a slow one is waited for. Traffic
// is neither encrypted nor authenticated: who can reach the ports can read and change it.
class ProcessGroup {
 public:
  ProcessGroup();  // alone
  // Waits for all; throws Error naming those who did not come, or whoever came twice.
  explicit ProcessGroup(const Launch& launch, const ProcessGroupOptions& options = {});
  ~ProcessGroup();  // without close(): the others see a lost process
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool alone() const { return size_ == 1; }
  bool first() const { return rank_ == 0; }
  // Processes on the same host, and those of them that may run on the same cores, this one
  // included: each may take its share of the memory and of the cores.
  int sharing_memory() const { return sharing_memory_; }
  int sharing_cores() const { return sharing_cores_; }

  // Sums in place over all processes, contiguous float32 or float64, any shape that is the same
  // everywhere. The result has the same bytes in all processes. Each sends and receives about
  // 2·(size − 1)/size times the tensor's bytes.
  void sum(at::Tensor& values);
  // Rank 0's values for all, in place; any type, contiguous.
  void broadcast(at::Tensor& values);
  // Every process has a matrix of its own (rows × columns, float64 or float32), rank 0 a place for
  // each, by rank, of the same shape and type as what comes: it may be a part of a larger matrix.
  // Rank 0's own is copied. Others give no places. Sent in pieces of at most 16 MiB.
  void gather(const at::Tensor& own, const std::vector<at::Tensor>& places);
  void barrier();

  // Throws Error in every process unless all have the same `value`: "data: rank 2 has …, rank 0 …".
  void agree(const std::string& what, const std::string& value);
  // This process cannot go on and tells the others why: they end, too.
  void give_up(const std::string& reason);
  // All are through with each other. Rank and size stay, no further call may be made.
  void close();

  // Values that went into sum() so far, in bytes, and how often it was called.
  std::int64_t summed_bytes() const { return summed_bytes_; }
  std::int64_t sums() const { return sums_; }

 private:
  struct Connections;
  void wait_for_all(const Launch& launch, const ProcessGroupOptions& options);
  void connect(const Launch& launch);
  bool connected() const;
  template <typename Work>
  void guarded(const Work& work);

  int rank_ = 0, size_ = 1, sharing_memory_ = 1, sharing_cores_ = 1;
  std::int64_t summed_bytes_ = 0, sums_ = 0, agreements_ = 0;
  std::unique_ptr<Connections> connections_;
};

}  // namespace pumice
