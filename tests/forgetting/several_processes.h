// Several processes in one: threads that take turns and add up tensors as a process group would.
#pragma once

#include <ATen/ATen.h>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "pumice/linearization/example_stream.h"

namespace pumice::testing {

// One of them runs at a time (forward-mode differentiation has one level for the whole program);
// who waits for a sum lets the others go on.
class TakingTurns {
 public:
  explicit TakingTurns(std::int64_t count) : count_(count) {}

  // Runs `work(shard, sum_over_processes)` in each of them; throws what one of them threw.
  using Sum = std::function<void(at::Tensor&)>;
  void run(const std::function<void(const Shard&, const Sum&)>& work) {
    std::vector<std::thread> threads;
    for (std::int64_t index = 0; index < count_; ++index) {
      threads.emplace_back([&, index] {
        std::unique_lock<std::mutex> turn(mutex_);
        try {
          work({.index = index, .count = count_}, [&](at::Tensor& tensor) { add(tensor, turn); });
        } catch (...) {
          if (!error_) error_ = std::current_exception();
          changed_.notify_all();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
  }

  std::int64_t sums() const { return round_; }  // that all of them took part in

 private:
  void add(at::Tensor& tensor, std::unique_lock<std::mutex>& turn) {
    if (arrived_ == 0) {
      total_ = at::zeros_like(tensor);
    }
    total_ = total_ + tensor;
    const std::int64_t own = round_;
    if (++arrived_ == count_) {
      arrived_ = 0;
      result_ = total_;
      ++round_;
      changed_.notify_all();
    } else {
      changed_.wait(turn, [&] { return round_ > own || error_; });
      if (round_ == own) throw std::runtime_error("another process ended");
    }
    tensor.copy_(result_);
  }

  const std::int64_t count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr error_;
  at::Tensor total_, result_;
  std::int64_t arrived_ = 0, round_ = 0;
};

}  // namespace pumice::testing
