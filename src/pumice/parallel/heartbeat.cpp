#include "pumice/parallel/heartbeat.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "pumice/core/error.h"

namespace pumice {
namespace {

using Clock = RollCall::Clock;

const char* const verdict_name = "verdict";
const char* const readers_name = "verdict readers";

std::string beats_of(int rank) {
  return text("beats of ", rank);
}

std::string sentence_of(const LostProcess& loss) {
  const char* restart = "; nothing was written, start all processes again";
  if (!loss.rank) {
    return text("the connection to another process broke, though all still answer: ", loss.reason,
                restart);
  }
  return text("process of rank ", *loss.rank, " is lost, ", loss.reason, restart);
}

}  // namespace

class Heartbeat::Watch {
 public:
  Watch(std::unique_ptr<Noticeboard> board, int rank, int size, HeartbeatTimes times,
        std::function<void(const std::string&)> on_loss)
      : board_(std::move(board)),
        rank_(rank),
        size_(size),
        times_(times),
        on_loss_(std::move(on_loss)),
        roll_call_(rank, size, times, Clock::now()) {
    beating_ = std::thread([this] { beat(); });
    judging_ = std::thread([this] { judge(); });
  }

  ~Watch() { stop(); }

  std::string find_out(const std::string& reason) {
    std::unique_lock lock(mutex_);
    roll_call_.connection_broke(Clock::now(), reason);
    changed_.wait(lock, [this] { return told_ || stopping_; });
    return sentence_;
  }

  void give_up(const std::string& reason) {
    std::unique_lock lock(mutex_);
    if (!verdict_.empty() || !sentence_.empty()) return;  // the others know of something else
    own_reason_ = reason;
    post({.sentence = text("process of rank ", rank_, " gave up: ", reason), .silent = 0}, lock);
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    // The judge last: a meeting point that stands still now would hold the other for ever.
    if (beating_.joinable()) beating_.join();
    {
      const std::lock_guard lock(mutex_);
      beating_ended_ = true;
    }
    changed_.notify_all();
    if (judging_.joinable()) judging_.join();
  }

 private:
  struct Notice {
    std::string sentence = {};
    int silent = 0;  // processes that will not read it
  };

  void beat() {
    while (true) {
      try {
        round();
      } catch (const std::exception& error) {
        const std::string reason = error.what();
        const std::lock_guard lock(mutex_);
        if (!stopping_) {
          roll_call_.meeting_point_broke(Clock::now(), reason.substr(0, reason.find('\n')));
        }
        return;
      }
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, times_.interval,
                        [this] { return stopping_ || !notice_.sentence.empty(); });
      if (stopping_ || !verdict_.empty()) return;
    }
  }

  void round() {
    board_->add(beats_of(rank_), 1);
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      const std::int64_t beats = board_->add(beats_of(other), 0);
      const std::lock_guard lock(mutex_);
      roll_call_.heard(other, beats, Clock::now());
    }
    Notice notice;
    {
      const std::lock_guard lock(mutex_);
      roll_call_.round_done(Clock::now());
      std::swap(notice, notice_);
    }
    bool posted = board_->has(verdict_name);
    if (!posted && !notice.sentence.empty()) {
      board_->add(readers_name, notice.silent);
      board_->write(verdict_name, notice.sentence);
      posted = true;
    }
    if (posted) read_verdict();
  }

  void read_verdict() {
    const std::string verdict = board_->read(verdict_name);
    std::int64_t readers = board_->add(readers_name, 1);
    const Clock::time_point end = Clock::now() + 3 * times_.interval;
    while (rank_ == 0 && readers < size_ && Clock::now() < end) {
      std::this_thread::sleep_for(times_.interval / 10);
      readers = board_->add(readers_name, 0);
    }
    const std::lock_guard lock(mutex_);
    verdict_ = verdict;
    changed_.notify_all();
  }

  void judge() {
    std::unique_lock lock(mutex_);
    Clock::time_point last = Clock::now();
    while (!told_) {
      const auto verdict_counts = [this] { return !verdict_.empty() && own_reason_.empty(); };
      changed_.wait_for(lock, times_.interval / 4,
                        [&] { return beating_ended_ || verdict_counts(); });
      if (beating_ended_) return;
      const Clock::time_point now = Clock::now();
      if (now - last > times_.limit / 2) roll_call_.forgive(now);
      last = now;
      if (!verdict_counts()) {
        const std::optional<LostProcess> loss = roll_call_.judge(now);
        if (!loss) continue;
        sentence_ = own_reason_.empty() ? sentence_of(*loss) : own_reason_;
        // Without rank 0 there is no board; the others find out by themselves.
        if (loss->rank != 0) post({.sentence = sentence_, .silent = loss->rank ? 1 : 0}, lock);
      }
      if (verdict_counts()) sentence_ = verdict_;
      lock.unlock();
      on_loss_(sentence_);
      lock.lock();
      told_ = true;
      changed_.notify_all();
    }
  }

  // Through the beating thread, which alone speaks with the board; a slow board is not waited for.
  void post(Notice notice, std::unique_lock<std::mutex>& lock) {
    notice_ = std::move(notice);
    changed_.notify_all();
    changed_.wait_for(lock, 5 * times_.interval, [this] { return !verdict_.empty(); });
  }

  std::unique_ptr<Noticeboard> board_;  // the beating thread's
  const int rank_, size_;
  const HeartbeatTimes times_;
  const std::function<void(const std::string&)> on_loss_;

  std::mutex mutex_;
  std::condition_variable changed_;
  RollCall roll_call_;
  Notice notice_;           // for the board
  std::string verdict_;     // from the board
  std::string own_reason_;  // to give up: the caller tells it
  std::string sentence_;    // what this process believes and tells
  bool told_ = false, stopping_ = false, beating_ended_ = false;
  std::thread beating_, judging_;
};

Heartbeat::Heartbeat(std::unique_ptr<Noticeboard> board, int rank, int size, HeartbeatTimes times,
                     std::function<void(const std::string&)> on_loss)
    : watch_(std::make_unique<Watch>(std::move(board), rank, size, times, std::move(on_loss))) {}

Heartbeat::~Heartbeat() = default;

std::string Heartbeat::find_out(const std::string& reason) {
  return watch_->find_out(reason);
}

void Heartbeat::give_up(const std::string& reason) {
  watch_->give_up(reason);
}

void Heartbeat::stop() {
  watch_->stop();
}

}  // namespace pumice
