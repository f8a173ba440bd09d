#include "pumice/parallel/roll_call.h"

#include <algorithm>

#include "pumice/core/error.h"

namespace pumice {
namespace {

std::string seconds_text(std::chrono::steady_clock::duration time) {
  const double tenths = std::chrono::duration<double>(time).count() * 10;
  const auto rounded = static_cast<std::int64_t>(tenths + 0.5);
  return rounded >= 100 ? text(rounded / 10, " s") : text(rounded / 10, ".", rounded % 10, " s");
}

}  // namespace

HeartbeatTimes heartbeat_times(double limit_seconds) {
  if (!(limit_seconds >= 0.5 && limit_seconds <= 50)) {
    fail("heartbeat limit: ", limit_seconds, " s, must be in 0.5 … 50");
  }
  const std::chrono::milliseconds limit(static_cast<std::int64_t>(limit_seconds * 1000));
  return {.interval = std::min(std::chrono::milliseconds(2000), limit / 6), .limit = limit};
}

RollCall::RollCall(int own_rank, int size, HeartbeatTimes times, Time now)
    : own_rank_(own_rank), times_(times), members_(static_cast<std::size_t>(size)), round_(now) {
  for (Member& member : members_) member.heard = now;
}

void RollCall::heard(int rank, std::int64_t beats, Time now) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  if (beats == member.beats) return;
  member.beats = beats;
  member.heard = now;
}

void RollCall::round_done(Time now) {
  round_ = now;
}

void RollCall::meeting_point_broke(Time now, std::string reason) {
  if (!meeting_point_) meeting_point_ = Break{now, std::move(reason)};
}

void RollCall::connection_broke(Time now, std::string reason) {
  if (!connection_) connection_ = Break{now, std::move(reason)};
}

void RollCall::forgive(Time now) {
  round_ = now;
  for (Member& member : members_) member.heard = now;
}

std::optional<LostProcess> RollCall::judge(Time now) const {
  if (meeting_point_) {
    // At the end of a run it goes away in good order, and this process may be about to hear of it.
    if (now - meeting_point_->at < 2 * times_.interval) return std::nullopt;
    return LostProcess{0, text("its connection broke: ", meeting_point_->reason)};
  }
  const auto limit =
      connection_ ? std::min<Clock::duration>(times_.limit, 3 * times_.interval) : times_.limit;
  if (own_rank_ != 0 && now - round_ > limit) {
    return LostProcess{0, text("it has not answered for ", seconds_text(now - round_))};
  }
  // A meeting point that stands still tells nothing of the others: what counts is how long they had
  // been silent when it last answered. Rank 0 itself cannot blame it: a store that waits for half a
  // message of somebody who is gone answers nobody.
  const Time last_news = own_rank_ == 0 ? now : round_;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    const Clock::duration silence = last_news - members_[rank].heard;
    if (static_cast<int>(rank) == own_rank_ || silence <= limit) continue;
    return LostProcess{static_cast<int>(rank), text("no sign of life for ", seconds_text(silence))};
  }
  if (connection_ && now - connection_->at > 6 * times_.interval) {
    return LostProcess{std::nullopt, connection_->reason};
  }
  return std::nullopt;
}

}  // namespace pumice
