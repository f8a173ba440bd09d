// Who still answers: the bookkeeping of a heartbeat, without threads or network.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pumice {

struct HeartbeatTimes {
  std::chrono::milliseconds interval{2000};  // between two beats of a process
  // A process that was not heard for so long is lost. Beats come from a thread of their own, so
  // that a long computation does not delay them.
  std::chrono::milliseconds limit{30000};
};

// `limit` as given, and an interval that leaves room for five missed beats, 2 s at most. Throws
// Error unless 0.5 s <= limit <= 50 s: others are to know within a minute.
HeartbeatTimes heartbeat_times(double limit_seconds);

struct LostProcess {
  std::optional<int> rank;  // none: a connection broke, and everybody still answers
  std::string reason;
};

// One process's view of all others. Rank 0 keeps the meeting point: all news come through it, and
// while it does not answer nobody else is blamed.
class RollCall {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  RollCall(int own_rank, int size, HeartbeatTimes times, Time now);

  // `beats`: how often `rank` has beaten. Only a change is a sign of life.
  void heard(int rank, std::int64_t beats, Time now);
  void round_done(Time now);  // the meeting point answered everything that was asked
  void meeting_point_broke(Time now, std::string reason);
  // A message between processes failed: somebody is gone, or the network. Silence of three
  // intervals is enough from now on, and after six the connection itself is to blame.
  void connection_broke(Time now, std::string reason);
  // This process itself was stopped meanwhile and could hear nobody: everybody gets a new limit.
  void forgive(Time now);

  std::optional<LostProcess> judge(Time now) const;

 private:
  struct Member {
    std::int64_t beats = -1;
    Time heard;
  };
  struct Break {
    Time at;
    std::string reason;
  };

  int own_rank_;
  HeartbeatTimes times_;
  std::vector<Member> members_;
  Time round_;
  std::optional<Break> meeting_point_, connection_;
};

}  // namespace pumice
