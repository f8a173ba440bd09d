#include "pumice/parallel/heartbeat.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

namespace pumice {
namespace {

using namespace std::chrono_literals;

// What all boards of a test show. A frozen reader stands still; a torn down one throws.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::int64_t> numbers;
  std::map<std::string, std::string> texts;
  std::map<int, bool> frozen;
  bool gone = false;
};

class SharedBoard final : public Noticeboard {
 public:
  SharedBoard(Shared& shared, int rank) : shared_(shared), rank_(rank) {}
  std::int64_t add(const std::string& name, std::int64_t value) override {
    const auto lock = turn();
    return shared_.numbers[name] += value;
  }
  void write(const std::string& name, const std::string& text) override {
    const auto lock = turn();
    shared_.texts[name] = text;
  }
  bool has(const std::string& name) override {
    const auto lock = turn();
    return shared_.texts.contains(name);
  }
  std::string read(const std::string& name) override {
    const auto lock = turn();
    return shared_.texts.at(name);
  }

 private:
  std::unique_lock<std::mutex> turn() {
    std::unique_lock lock(shared_.mutex);
    shared_.changed.wait(lock, [this] { return !shared_.frozen[rank_]; });
    if (shared_.gone) throw std::runtime_error("connection reset\nand a stack trace");
    return lock;
  }
  Shared& shared_;
  int rank_;
};

class HeartbeatTest : public ::testing::Test {
 protected:
  HeartbeatTest() {
    for (int rank = 0; rank < 3; ++rank) {
      hearts_[rank] =
          std::make_unique<Heartbeat>(std::make_unique<SharedBoard>(shared_, rank), rank, 3,
                                      HeartbeatTimes{.interval = 30ms, .limit = 300ms},
                                      [this, rank](const std::string& sentence) {
                                        const std::lock_guard lock(mutex_);
                                        sentences_[rank] = sentence;
                                        told_.notify_all();
                                      });
    }
  }
  ~HeartbeatTest() override { thaw(); }

  void set(const std::function<void()>& change) {
    const std::lock_guard lock(shared_.mutex);
    change();
    shared_.changed.notify_all();
  }
  void thaw() {
    set([this] { shared_.frozen.clear(); });
  }
  void wait_for(int first, int second) {
    std::unique_lock lock(mutex_);
    told_.wait(lock, [&] { return sentences_.contains(first) && sentences_.contains(second); });
  }

  Shared shared_;
  std::mutex mutex_;
  std::condition_variable told_;
  std::map<int, std::string> sentences_;
  std::map<int, std::unique_ptr<Heartbeat>> hearts_;
};

TEST_F(HeartbeatTest, AllOthersSayTheSameOfAStoppedProcess) {
  set([this] { shared_.frozen[1] = true; });
  wait_for(0, 2);
  EXPECT_EQ(sentences_[0], sentences_[2]);
  EXPECT_EQ(sentences_[0].rfind("process of rank 1 is lost, no sign of life for 0.", 0), 0U)
      << sentences_[0];
  EXPECT_NE(sentences_[0].find("nothing was written, start all processes again"),
            std::string::npos);
}

TEST_F(HeartbeatTest, AMeetingPointThatVanishesIsRankZero) {
  set([this] { shared_.gone = true; });
  wait_for(1, 2);
  EXPECT_EQ(sentences_[2],
            "process of rank 0 is lost, its connection broke: connection reset; nothing was "
            "written, start all processes again");
}

TEST_F(HeartbeatTest, AMeetingPointThatStandsStillIsRankZero) {
  set([this] {
    for (int rank = 0; rank < 3; ++rank) shared_.frozen[rank] = true;
  });
  wait_for(1, 2);
  for (const int rank : {1, 2}) {
    EXPECT_EQ(sentences_[rank].rfind("process of rank 0 is lost, it has not answered for ", 0), 0U);
  }
}

TEST_F(HeartbeatTest, WhoGivesUpTellsTheOthersWhy) {
  hearts_[2]->give_up("disk full");
  wait_for(0, 1);
  EXPECT_EQ(sentences_[0], "process of rank 2 gave up: disk full");
  EXPECT_EQ(sentences_[1], sentences_[0]);
  EXPECT_FALSE(sentences_.contains(2));
}

TEST_F(HeartbeatTest, AFailedMessageIsExplainedByWhoIsGone) {
  set([this] { shared_.frozen[1] = true; });
  EXPECT_EQ(hearts_[2]
                ->find_out("connection closed by peer")
                .rfind("process of rank 1 is lost, no sign of life for ", 0),
            0U);
}

TEST_F(HeartbeatTest, AFailedMessageAmongTheLivingIsTheConnections) {
  EXPECT_EQ(hearts_[2]->find_out("connection closed by peer"),
            "the connection to another process broke, though all still answer: connection closed "
            "by peer; nothing was written, start all processes again");
}

TEST_F(HeartbeatTest, StoppingInGoodOrderTellsNobodyAnything) {
  for (const int rank : {0, 1, 2}) hearts_[rank]->stop();
  EXPECT_TRUE(sentences_.empty());
}

}  // namespace
}  // namespace pumice
