#include "pumice/parallel/roll_call.h"

#include <gtest/gtest.h>

#include "refusal.h"

namespace pumice {
namespace {

using namespace std::chrono_literals;
using testing::refusal;

class RollCallTest : public ::testing::Test {
 protected:
  // A second of a life in which everybody but `silent` beats once.
  void second(RollCall& roll_call, int silent = -1) {
    now_ += 1s;
    ++beats_;
    for (int rank = 0; rank < 4; ++rank) {
      if (rank != silent) roll_call.heard(rank, beats_, now_);
    }
    roll_call.round_done(now_);
  }
  const HeartbeatTimes times_{.interval = 2s, .limit = 30s};
  RollCall::Time now_ = RollCall::Time(1000s);
  std::int64_t beats_ = 0;
};

TEST_F(RollCallTest, NobodyIsLostWhileAllBeat) {
  RollCall roll_call(1, 4, times_, now_);
  for (int i = 0; i < 100; ++i) {
    second(roll_call);
    EXPECT_FALSE(roll_call.judge(now_));
  }
}

TEST_F(RollCallTest, TheSilentOneIsNamedAfterTheLimitAndNotBefore) {
  RollCall roll_call(1, 4, times_, now_);
  second(roll_call);
  for (int i = 0; i < 30; ++i) {
    second(roll_call, 2);
    EXPECT_FALSE(roll_call.judge(now_)) << i;
  }
  second(roll_call, 2);
  const std::optional<LostProcess> loss = roll_call.judge(now_);
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->rank, 2);
  EXPECT_EQ(loss->reason, "no sign of life for 31 s");
}

TEST_F(RollCallTest, AnOldCountHeardAgainIsNoSignOfLife) {
  RollCall roll_call(0, 4, times_, now_);
  second(roll_call);
  for (int i = 0; i < 31; ++i) {
    second(roll_call, 3);
    roll_call.heard(3, 1, now_);
  }
  ASSERT_TRUE(roll_call.judge(now_));
  EXPECT_EQ(roll_call.judge(now_)->rank, 3);
}

TEST_F(RollCallTest, AMeetingPointThatDoesNotAnswerIsRankZeroOnly) {
  RollCall roll_call(2, 4, times_, now_);
  second(roll_call);
  EXPECT_FALSE(roll_call.judge(now_ + 30s));
  const std::optional<LostProcess> loss = roll_call.judge(now_ + 31s);
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->rank, 0);
  EXPECT_EQ(loss->reason, "it has not answered for 31 s");
}

TEST_F(RollCallTest, WhoWasLastHeardBeforeTheMeetingPointStoodStillIsNotBlamedForIt) {
  RollCall roll_call(1, 4, times_, now_);
  second(roll_call);
  second(roll_call, 2);  // late with its beat, and rank 0 stops before the next round
  for (int i = 0; i <= 30; ++i) EXPECT_FALSE(roll_call.judge(now_ + i * 1s)) << i;
  const std::optional<LostProcess> loss = roll_call.judge(now_ + 31s);
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->rank, 0);
}

TEST_F(RollCallTest, AMeetingPointThatBreaksMayJustHaveEnded) {
  RollCall roll_call(2, 4, times_, now_);
  roll_call.meeting_point_broke(now_, "reset");
  EXPECT_FALSE(roll_call.judge(now_ + 3s));
  ASSERT_TRUE(roll_call.judge(now_ + 4s));
  EXPECT_EQ(roll_call.judge(now_ + 4s)->rank, 0);
  EXPECT_EQ(roll_call.judge(now_ + 4s)->reason, "its connection broke: reset");
}

TEST_F(RollCallTest, AfterABrokenMessageAShortSilenceIsEnough) {
  RollCall roll_call(1, 4, times_, now_);
  second(roll_call);
  roll_call.connection_broke(now_, "reset by peer");
  for (int i = 0; i < 6; ++i) {
    second(roll_call, 3);
    EXPECT_FALSE(roll_call.judge(now_)) << i;
  }
  second(roll_call, 3);
  ASSERT_TRUE(roll_call.judge(now_));
  EXPECT_EQ(roll_call.judge(now_)->rank, 3);
}

TEST_F(RollCallTest, IfAllStillAnswerTheConnectionIsToBlame) {
  RollCall roll_call(1, 4, times_, now_);
  roll_call.connection_broke(now_, "reset by peer");
  for (int i = 0; i < 12; ++i) {
    second(roll_call);
    EXPECT_FALSE(roll_call.judge(now_)) << i;
  }
  second(roll_call);
  ASSERT_TRUE(roll_call.judge(now_));
  EXPECT_FALSE(roll_call.judge(now_)->rank);
  EXPECT_EQ(roll_call.judge(now_)->reason, "reset by peer");
}

TEST_F(RollCallTest, WhoWasStoppedItselfBlamesNobodyForIt) {
  RollCall roll_call(1, 4, times_, now_);
  second(roll_call);
  now_ += 1h;
  roll_call.forgive(now_);
  EXPECT_FALSE(roll_call.judge(now_ + 30s));
  EXPECT_TRUE(roll_call.judge(now_ + 31s));
}

TEST(HeartbeatTimes, LeaveRoomForMissedBeatsAndForAMinute) {
  EXPECT_EQ(heartbeat_times(30).interval, 2s);
  EXPECT_EQ(heartbeat_times(30).limit, 30s);
  EXPECT_EQ(heartbeat_times(3).interval, 500ms);
  for (const double wrong : {0.4, 50.1, -1.0, std::nan("")}) {
    EXPECT_NE(refusal([&] { heartbeat_times(wrong); }).find("must be in 0.5 … 50"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace pumice
