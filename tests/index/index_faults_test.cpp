// An index that is damaged, in use, interrupted, or on a full disk.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include "pumice/core/atomic_file.h"
#include "refusal.h"
#include "small_index.h"

namespace pumice {
namespace {

using namespace testing;  // NOLINT: the small index
namespace files = std::filesystem;

struct Killed {};

TEST(IndexFaults, AnyFlippedByteOfAnyFileIsFoundWhenItIsOpened) {
  const SmallIndex small;
  small.request({1, 2});
  for (const char* name : {"index.safetensors", "point.safetensors", "ledger.jsonl"}) {
    const files::path path = small.folder / name;
    const std::string good = content_of(path);
    // Lengths, headers, and every part of what follows.
    for (std::size_t i = 0; i < good.size(); i += i < 40 ? 1 : 1 + good.size() / 37) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 4);
      write_file_atomically(path, bad);
      const std::string sentence = refusal([&] { ForgettingIndex index(small.folder); });
      EXPECT_NE(sentence.find("damaged"), std::string::npos) << name << " " << i << sentence;
      EXPECT_EQ(content_of(path), bad);
    }
    write_file_atomically(path, good.substr(0, good.size() - 1));
    EXPECT_NE(refusal([&] { ForgettingIndex index(small.folder); }), "accepted");
    write_file_atomically(path, good);
  }
  EXPECT_EQ(refusal([&] { ForgettingIndex index(small.folder); }), "accepted");
}

TEST(IndexFaults, FilesOfAnotherIndexAreRefused) {
  const SmallIndex small, other;
  for (const char* name : {"index.safetensors", "point.safetensors"}) {
    const std::string own = content_of(small.folder / name);
    // The other's point is the same model; its release is not.
    if (std::string(name) == "point.safetensors") other.request({1}, "release");
    write_file_atomically(small.folder / name, content_of(std::string(name) == "point.safetensors"
                                                              ? other.home / "release"
                                                              : other.folder / name));
    EXPECT_NE(refusal([&] { ForgettingIndex index(small.folder); }).find("not of this index"),
              std::string::npos);
    write_file_atomically(small.folder / name, own);
  }
  EXPECT_NE(refusal([&] { ForgettingIndex index(small.home.path()); }).find("is no index"),
            std::string::npos);
}

TEST(IndexFaults, TwoAtOnceAreTold) {
  const SmallIndex small;
  const ForgettingIndex first(small.folder);
  EXPECT_NE(refusal([&] {
              ForgettingIndex second(small.folder);
            }).find("another run is at work in this folder (process "),
            std::string::npos);
}

TEST(IndexFaults, AKillAtAnyStepOfARequestLeavesTheIndexBeforeItOrAfterIt) {
  const SmallIndex reference;
  std::vector<std::string> steps;
  reference.request({1, 2}, "released", {},
                    [&](const std::string& step) { steps.push_back(step); });
  ASSERT_GT(steps.size(), 8U);
  const SmallIndex small;
  std::int64_t victim = 3;
  bool committed = false;
  for (const std::string& last : steps) {
    SCOPED_TRACE(last);
    committed = committed || last == "committed";
    const std::int64_t left = ForgettingIndex(small.folder).content().examples();
    files::remove(small.home / "released");
    const auto before = small.state();
    EXPECT_THROW(small.request({victim}, "released", {},
                               [&](const std::string& step) {
                                 if (step == last) throw Killed();
                               }),
                 Killed);
    const ForgettingIndex index(small.folder);
    EXPECT_EQ(index.content().examples(), committed ? left - 1 : left);
    EXPECT_EQ(files::exists(small.home / "released"), committed);
    if (!committed) {
      EXPECT_EQ(small.state(), before);
    }
    for (const auto& [name, content] : small.state()) {
      EXPECT_EQ(files::path(name).filename().string().front() == '.', false) << name;
    }
    EXPECT_EQ(files::exists(small.folder / "journal.json"), false);
    if (committed) ++victim;
  }
  EXPECT_TRUE(committed);
}

TEST(IndexFaults, AKillAtAnyStepOfARefreshLeavesOnePointOrTheOther) {
  std::vector<std::string> steps;
  bool committed = false;
  std::size_t next = 0;
  do {
    const SmallIndex small;
    const Weights released = small.request({1, 2});
    const Checkpoint model{small.checkpoint.model, released, small.checkpoint.metadata};
    std::size_t count = 0;
    std::string last;
    const auto before = small.state();
    try {
      ForgettingIndex index(small.folder, [&](const std::string& step) {
        if (next == 0) steps.push_back(step);
        if (next > 0 && ++count == next) {
          last = step;
          throw Killed();
        }
      });
      index.refresh(model, small.data);
    } catch (const Killed&) {
    }
    committed = committed || last == "committed";
    const ForgettingIndex index(small.folder);
    const bool refreshed = next == 0 || committed;
    EXPECT_EQ(index.content().terms.model,
              digest(*model.model, refreshed ? released : small.checkpoint.weights))
        << last;
    EXPECT_EQ(digest(index.point().weights),
              digest(refreshed ? released : small.checkpoint.weights));
    if (!refreshed) {
      EXPECT_EQ(small.state(), before) << last;
    }
  } while (++next <= steps.size());
  EXPECT_TRUE(committed);
}

// The limit on a file's size stands for a full disk.
TEST(IndexFaults, AFullDiskLeavesIndexAndLedgerAsTheyWere) {
  const SmallIndex small;
  const auto before = small.state();
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  ::getrlimit(RLIMIT_FSIZE, &usual);
  rlimit tight = usual;
  // Enough for the release (about 6 KB), too little for the index.
  tight.rlim_cur = 30000;
  ::setrlimit(RLIMIT_FSIZE, &tight);
  const std::string sentence = refusal([&] { small.request({4}); });
  ::setrlimit(RLIMIT_FSIZE, &usual);
  EXPECT_NE(sentence.find("cannot be written"), std::string::npos) << sentence;
  EXPECT_EQ(small.state(), before);
  small.request({4});
  EXPECT_EQ(ForgettingIndex(small.folder).content().examples(), 59);
}

TEST(IndexFaults, AFullDiskStopsARefreshANoteAndABuildAsWell) {
  const SmallIndex small;
  Checkpoint release = small.checkpoint;
  release.weights = small.request({4});
  const auto before = small.state();
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  ::getrlimit(RLIMIT_FSIZE, &usual);
  const auto on_a_full_disk = [&](rlim_t most, const auto& work) {
    rlimit tight = usual;
    tight.rlim_cur = most;
    ::setrlimit(RLIMIT_FSIZE, &tight);
    const std::string sentence = refusal(work);
    ::setrlimit(RLIMIT_FSIZE, &usual);
    EXPECT_NE(sentence.find("cannot be written"), std::string::npos) << sentence;
    EXPECT_EQ(small.state(), before);
  };
  const ForgettingTask all = small.task(small.split);
  // Nothing at all, the journal, the ledger too, all but the index.
  for (const rlim_t most : {0, 100, 700, 30000}) {
    on_a_full_disk(most, [&] { ForgettingIndex(small.folder).refresh(release, small.data); });
    on_a_full_disk(most, [&] {
      SharedProblems shared(all);
      build_index(small.home / "another", {.task = all, .checkpoint = small.checkpoint, .data = {}},
                  shared);
    });
  }
  for (const rlim_t most : {0, 100, 700}) {
    on_a_full_disk(most, [&] {
      ForgettingIndex(small.folder).note("bound", {{"request", 1}, {"white_box", 2.0}});
    });
  }
  ForgettingIndex(small.folder).refresh(release, small.data);
  EXPECT_EQ(ForgettingIndex(small.folder).content().terms.point_examples, 59);
}

}  // namespace
}  // namespace pumice
