// A sign of life every other second, through the meeting point, and an eye on everybody else's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pumice/parallel/roll_call.h"

namespace pumice {

// What the heartbeat needs of the meeting point: counters and texts that all processes see. All
// functions may block as long as the meeting point does, and throw when it is gone.
class Noticeboard {
 public:
  virtual ~Noticeboard() = default;
  virtual std::int64_t add(const std::string& name, std::int64_t value) = 0;  // the sum afterwards
  virtual void write(const std::string& name, const std::string& text) = 0;
  virtual bool has(const std::string& name) = 0;
  virtual std::string read(const std::string& name) = 0;  // waits until it is there
};

// Two threads. One beats: it counts up its own number and reads those of the others; a meeting
// point that stands still (its process was stopped) makes it stand still too. The other looks at
// the clock and judges; it waits for nothing. The first to find somebody lost writes it on the
// board, so that all say the same; rank 0, whose end takes the board away, waits until the others
// have read it.
class Heartbeat {
 public:
  // `board`: a connection that nobody else uses. `on_loss` is called once, on the judging thread,
  // with a whole sentence; it usually ends the process.
  Heartbeat(std::unique_ptr<Noticeboard> board, int rank, int size, HeartbeatTimes times,
            std::function<void(const std::string& sentence)> on_loss);
  ~Heartbeat();  // stop()
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // A message to another process failed. Waits until it is known who is gone, and until on_loss has
  // returned, should it; returns its sentence.
  std::string find_out(const std::string& reason);
  // This process gives up and tells the others why. Returns when they know, or after three
  // intervals.
  void give_up(const std::string& reason);
  void stop();  // in good order; all processes are through with each other

 private:
  class Watch;
  std::unique_ptr<Watch> watch_;
};

}  // namespace pumice
