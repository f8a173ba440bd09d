#include "pumice/parallel/process_group.h"

#include <gtest/gtest.h>

#include <thread>

#include "free_port.h"
#include "refusal.h"

namespace pumice {
namespace {

using namespace std::chrono_literals;
using testing::free_port;
using testing::refusal;

// Ranks are threads here: for Gloo that makes no difference.
class Together {
 public:
  explicit Together(int size) : size_(size), port_(free_port()) {}

  Launch launch(int rank) const {
    return {.rank = rank, .size = size_, .host = "127.0.0.1", .port = port_, .source = "a test"};
  }
  static ProcessGroupOptions options() {
    return {.heartbeat = heartbeat_times(5),
            .patience = 20s,
            .on_loss = [](const std::string& sentence) { ADD_FAILURE() << sentence; }};
  }
  // Returns what each was refused with.
  std::vector<std::string> run(const std::function<void(ProcessGroup&)>& work) const {
    std::vector<std::string> refused(static_cast<std::size_t>(size_));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] {
        refused[static_cast<std::size_t>(rank)] = refusal([&] {
          ProcessGroup group(launch(rank), options());
          const std::string sentence = refusal([&] { work(group); });
          group.close();
          if (sentence != "accepted") fail(sentence);
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
    return refused;
  }

 private:
  int size_;
  std::uint16_t port_;
};

void expect_accepted(const std::vector<std::string>& refused) {
  for (const std::string& sentence : refused) EXPECT_EQ(sentence, "accepted");
}

TEST(ProcessGroup, AloneEverythingStaysAsItIs) {
  ProcessGroup group;
  EXPECT_TRUE(group.alone());
  EXPECT_TRUE(group.first());
  at::Tensor values = at::arange(5, at::kDouble);
  group.sum(values);
  group.broadcast(values);
  EXPECT_TRUE(at::equal(values, at::arange(5, at::kDouble)));
  at::Tensor place = at::zeros({2, 3}, at::kDouble);
  group.gather(at::ones({2, 3}, at::kDouble), {place});
  EXPECT_TRUE(at::equal(place, at::ones({2, 3}, at::kDouble)));
  group.agree("anything", "x");
  group.close();
}

TEST(ProcessGroup, SumsAreTheSameBytesEverywhereAndRight) {
  std::vector<at::Tensor> wide(4), narrow(4);
  // More than one piece of 64 MiB.
  const std::int64_t count = 8'500'001;
  expect_accepted(Together(4).run([&](ProcessGroup& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    wide[rank] = at::linspace(0, 1, count, at::kDouble) * (group.rank() + 1);
    group.sum(wide[rank]);
    narrow[rank] = at::full({3, 5}, 0.1F * static_cast<float>(group.rank() + 1), at::kFloat);
    group.sum(narrow[rank]);
    EXPECT_EQ(group.sums(), 2);
    EXPECT_EQ(group.summed_bytes(), 8 * count + 4 * 15);
  }));
  EXPECT_TRUE(at::allclose(wide[0], at::linspace(0, 1, count, at::kDouble) * 10, 1e-14, 0));
  EXPECT_TRUE(at::allclose(narrow[0], at::full({3, 5}, 1.0F), 1e-6, 0));
  for (std::size_t rank = 1; rank < 4; ++rank) {
    EXPECT_TRUE(at::equal(wide[rank], wide[0]));
    EXPECT_TRUE(at::equal(narrow[rank], narrow[0]));
  }
}

TEST(ProcessGroup, RankZerosValuesReachAll) {
  expect_accepted(Together(3).run([&](ProcessGroup& group) {
    at::Tensor values = at::full({7}, group.rank(), at::kLong);
    group.broadcast(values);
    EXPECT_TRUE(at::equal(values, at::zeros({7}, at::kLong)));
  }));
}

TEST(ProcessGroup, TilesOfDifferentSizesFindTheirPlaces) {
  // Rank r has r + 1 rows of 2r columns: none at all for rank 0; more than a piece for rank 3.
  const auto tile = [](int rank, std::int64_t wide) {
    return at::arange((rank + 1) * 2 * rank * wide, at::kDouble).view({rank + 1, 2 * rank * wide}) +
           1000.0 * rank;
  };
  const std::int64_t wide = 400'000;
  expect_accepted(Together(4).run([&](ProcessGroup& group) {
    at::Tensor whole;
    std::vector<at::Tensor> places;
    if (group.first()) {
      whole = at::zeros({10, 7 * wide}, at::kDouble);
      std::int64_t row = 0;
      for (int rank = 0; rank < 4; ++rank) {
        places.push_back(whole.narrow(0, row, rank + 1).narrow(1, 3, 2 * rank * wide));
        row += rank + 1;
      }
    }
    group.gather(tile(group.rank(), wide), places);
    if (!group.first()) return;
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_TRUE(at::equal(places[static_cast<std::size_t>(rank)], tile(rank, wide))) << rank;
    }
    EXPECT_EQ(whole.narrow(1, 0, 3).abs().sum().item<double>(), 0);
  }));
}

TEST(ProcessGroup, ProcessesOnTheSameCoresKnowHowManyTheyAre) {
  expect_accepted(Together(3).run([](ProcessGroup& group) {
    EXPECT_EQ(group.sharing_cores(), 3);
    EXPECT_EQ(group.sharing_memory(), 3);
  }));
}

TEST(ProcessGroup, ASlowProcessIsWaitedFor) {
  const Together three(3);
  std::vector<std::thread> threads;
  for (const int rank : {0, 1, 2}) {
    threads.emplace_back([&, rank] {
      ProcessGroupOptions options = Together::options();
      options.heartbeat = heartbeat_times(0.5);
      ProcessGroup group(three.launch(rank), options);
      // Three times what would be the end of a process that does not beat.
      if (rank == 1) std::this_thread::sleep_for(1500ms);
      at::Tensor values = at::ones({3}, at::kDouble);
      group.sum(values);
      EXPECT_TRUE(at::equal(values, at::full({3}, 3.0, at::kDouble)));
      group.close();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ProcessGroup, WhoGivesUpEndsTheWaitOfTheOthers) {
  const Together two(2);
  std::string told, refused;
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    ProcessGroup group(two.launch(0), {.heartbeat = heartbeat_times(1),
                                       .on_loss = [&](const std::string& why) { told = why; }});
    at::Tensor values = at::ones({3}, at::kDouble);
    refused = refusal([&] { group.sum(values); });
  });
  threads.emplace_back([&] {
    ProcessGroup group(two.launch(1), {.heartbeat = heartbeat_times(1), .on_loss = {}});
    group.give_up("no such file");
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(told, "process of rank 1 gave up: no such file");
  EXPECT_EQ(refused, told);
}

TEST(ProcessGroup, WhatDiffersBetweenProcessesIsToldToAll) {
  const std::vector<std::string> refused = Together(3).run([](ProcessGroup& group) {
    group.agree("model", "blake2b:12");
    group.agree("data", group.rank() == 2 ? "blake2b:34" : "blake2b:12");
  });
  for (const std::string& sentence : refused) {
    EXPECT_EQ(sentence,
              "data: rank 2 has blake2b:34, rank 0 has blake2b:12; must be the same in all "
              "processes");
  }
}

TEST(ProcessGroup, WhoDoesNotComeIsNamed) {
  const Together three(3);
  std::vector<std::string> refused(2);
  std::vector<std::thread> threads;
  for (const int rank : {0, 1}) {
    threads.emplace_back([&, rank] {
      refused[static_cast<std::size_t>(rank)] =
          refusal([&] { ProcessGroup group(three.launch(rank), {.patience = 1s, .on_loss = {}}); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused[0].rfind("processes of rank 2: did not come to 127.0.0.1 port ", 0), 0U)
      << refused[0];
  // Who came late hears only that rank 0 did not wait any longer.
  EXPECT_TRUE(refused[1].starts_with("processes of rank 2: did not come to ") ||
              refused[1].starts_with("process of rank 0: ended before all had come"))
      << refused[1];
}

TEST(ProcessGroup, WithoutRankZeroTheMeetingPointIsNamed) {
  const std::string sentence = refusal(
      [] { ProcessGroup group(Together(2).launch(1), {.patience = 100ms, .on_loss = {}}); });
  EXPECT_EQ(sentence.rfind("process of rank 0: nobody listens at 127.0.0.1 port ", 0), 0U)
      << sentence;
}

TEST(ProcessGroup, AHostThatDoesNotExistIsTold) {
  Launch launch = Together(2).launch(1);
  launch.host = "no-such-host.invalid";
  const std::string sentence =
      refusal([&] { ProcessGroup group(launch, {.patience = 100ms, .on_loss = {}}); });
  EXPECT_NE(sentence.find("nobody listens at no-such-host.invalid"), std::string::npos) << sentence;
}

TEST(ProcessGroup, APortThatIsTakenIsTold) {
  const Together two(2);
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(two.launch(0).port);
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(socket, 1), 0);
  const std::string sentence =
      refusal([&] { ProcessGroup group(two.launch(0), {.patience = 100ms, .on_loss = {}}); });
  ::close(socket);
  EXPECT_NE(sentence.find("must be a free port of rank 0's host"), std::string::npos) << sentence;
}

TEST(ProcessGroup, ARankThatComesTwiceIsRefused) {
  const Together two(2);
  std::vector<std::string> refused(3);
  std::vector<std::thread> threads;
  for (const int which : {0, 1, 2}) {
    threads.emplace_back([&, which] {
      refused[static_cast<std::size_t>(which)] = refusal([&] {
        const int rank = which == 0 ? 0 : 1;
        ProcessGroup group(two.launch(rank), Together::options());
        group.close();
      });
    });
    // Rank 0 has to wait for somebody while the second of the same rank comes.
    if (which == 0) std::this_thread::sleep_for(100ms);
  }
  for (std::thread& thread : threads) thread.join();
  const auto twice = std::count_if(refused.begin(), refused.end(), [](const std::string& sentence) {
    return sentence.rfind("RANK: 1 came twice to ", 0) == 0;
  });
  EXPECT_EQ(refused[0], "accepted");
  EXPECT_EQ(twice, 1) << refused[1] << refused[2];
}

}  // namespace
}  // namespace pumice
